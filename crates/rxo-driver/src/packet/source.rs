//! Source of a packet socket: frames that arrive on an interface, from a memory-mapped ring.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rxo_device::{
    Descriptors, DeviceError, FrameSource, Look, Looked, SourceCapabilities, SourceCounters,
    Verdict,
};
use rxo_frame::{Frame, Instant, LinkKind, Pool};

use super::arrivals::Arrivals;
use super::queue::{Place, Queue};
use super::ring::RingMap;
use super::socket::{Opened, bound, device_error, is_deleted};
use super::take::{Pools, SlotOutcome, discard, take};
use crate::buffer::DeviceBuf;
use crate::clock::StampScale;
use crate::device::SystemSource;
use crate::interface::{Feature, Interface};
use crate::{fault, sys};

/// Options of a packet source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketOptions {
    /// The number of slots in the ring, from 1 to 1,048,576, rounded up to a multiple of 64 (more if pages are
    /// larger than 4 KiB). At a million frames a second, 8,192 slots buffer the frames of 8 ms. More slots are
    /// not better: the kernel writes all slots in turn, so a ring that exceeds the caches makes every frame more
    /// expensive (measured with 1,600 bytes a slot: 4,096 slots 10 ns, 8,192 70 ns, 16,384 200 ns).
    pub ring_slots: u32,
    /// The number of buffers for frames too large for a slot, at least 1. While all are in use, such frames
    /// wait in the ring.
    pub large_buffers: usize,
    /// `true` to receive frames for other hosts too.
    pub promiscuous: bool,
}

impl Default for PacketOptions {
    fn default() -> Self {
        Self { ring_slots: 8_192, large_buffers: 128, promiscuous: true }
    }
}

/// Receives the frames that arrive on an interface, but not the frames that the interface sends.
///
/// The host's own stack receives the same frames. Give the interface no addresses; otherwise both that stack
/// and the user of this source answer. A frame larger than a slot (a GSO frame) is read from a second queue,
/// in order.
#[derive(Debug)]
pub struct PacketSource {
    device: String,
    interface: Interface,
    socket: Arc<OwnedFd>,
    ring: Arc<RingMap>,
    large: Pools,
    /// Buffers for copies of the newest frame of a batch, if the caller holds frames while it waits for more;
    /// otherwise `None`.
    spare: Option<Pool>,
    next_slot: u32,
    /// An instant at which the ring was empty, so all frames in it arrived later.
    empty_at: Instant,
    mtu: u32,
    counters: SourceCounters,
    is_gone: bool,
    is_down: bool,
    arrivals: Arrivals,
    /// `true` if a large frame waits in the ring because no buffer is free.
    lacks_buffer: bool,
    /// The queue that outlives this source; `None` if no queue does.
    queue: Option<Arc<Queue>>,
    /// `true` if this source must continue at the place at which the queue's last source stopped, and has not
    /// read that place yet.
    must_resume: bool,
}

impl PacketSource {
    /// Opens a source on the interface `name`, which must be up.
    ///
    /// # Errors
    /// If there is no such interface, the interface is down, privilege is missing, or there is no memory for
    /// the ring.
    pub fn open(name: &str, options: PacketOptions) -> Result<Self, DeviceError> {
        check(name, options)?;
        let opened = Opened::new(name)?;
        opened.set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as _)?;
        // Any value but zero: the kernel then also queues a whole copy of each frame that does not fit into
        // its slot.
        opened.set(libc::PACKET_COPY_THRESH, 1)?;
        opened.try_set(libc::PACKET_IGNORE_OUTGOING, 1);
        opened.enlarge_queue(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF);
        let mtu = opened.interface.mtu()?;
        let ring = RingMap::new(opened.socket(), options.ring_slots, mtu)
            .map_err(|e| fault::opening(&opened.device, e))?;
        if options.promiscuous {
            opened.set_promiscuous()?;
        }
        opened.bind(libc::ETH_P_ALL as u16)?;
        let Opened { device, interface, socket } = opened;
        let sockets = (Arc::new(socket), Arc::new(ring));
        Ok(Self::of((device, interface, mtu), sockets, options.large_buffers))
    }

    /// Creates a source that reads the ring of a socket.
    fn of(
        (device, interface, mtu): (String, Interface, u32),
        (socket, ring): (Arc<OwnedFd>, Arc<RingMap>),
        large_buffers: usize,
    ) -> Self {
        let arrivals = Arrivals::of(&interface, Arc::clone(&socket));
        Self {
            device,
            interface,
            socket,
            ring,
            large: Pools::new(large_buffers),
            spare: None,
            next_slot: 0,
            empty_at: Instant::ZERO,
            mtu,
            counters: SourceCounters::default(),
            is_gone: false,
            is_down: false,
            arrivals,
            lacks_buffer: false,
            queue: None,
            must_resume: false,
        }
    }

    /// Creates the sources of the interface `device`, one for each of `queues`. Each source continues where the
    /// queue's last source stopped; it reads this place when it is first used.
    ///
    /// # Errors
    /// If the interface was deleted.
    pub(super) fn of_queues(
        device: &str,
        queues: &[Arc<Queue>],
        options: PacketOptions,
    ) -> Result<Vec<Self>, DeviceError> {
        let source = |queue: &Arc<Queue>| {
            let interface = bound(device, queue.source.as_fd())?;
            let mtu = interface.mtu()?;
            let sockets = (Arc::clone(&queue.source), Arc::clone(&queue.ring));
            let mut source =
                Self::of((device.to_owned(), interface, mtu), sockets, options.large_buffers);
            source.must_resume = true;
            Ok(source.leaving_to(Arc::clone(queue)))
        };
        let mut sources = queues.iter().map(source).collect::<Result<Vec<_>, DeviceError>>()?;
        if sources.len() > 1 {
            let mut all: Vec<_> = sources.iter_mut().map(|source| &mut source.arrivals).collect();
            Arrivals::join(&mut all);
        }
        Ok(sources)
    }

    /// Returns the socket and the ring, for a queue that outlives this source.
    pub(super) fn parts(&self) -> (Arc<OwnedFd>, Arc<RingMap>) {
        (Arc::clone(&self.socket), Arc::clone(&self.ring))
    }

    /// Makes this source store its place in `queue` when it is dropped or [`leave`](SystemSource::leave) is
    /// called.
    pub(super) fn leaving_to(mut self, queue: Arc<Queue>) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Continues at the place at which the queue's last source stopped, if this source has not done so yet.
    #[inline]
    fn resume(&mut self) {
        if self.must_resume
            && let Some(queue) = &self.queue
        {
            let place = queue.place();
            (self.must_resume, self.next_slot) = (false, place.slot);
            self.arrivals.resume(place);
        }
    }

    /// Returns the interface whose frames are received.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the device's name as the user wrote it: `packet:eth1`.
    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// Starts the sources of a group. Discards the frames that arrived before all sources were members,
    /// because several sources may have got them, and restarts the counts of arrivals.
    pub(super) fn begin_together(sources: &mut [Self]) {
        for source in &mut *sources {
            while let Some(slot) = source.ring.filled(source.next_slot) {
                discard(slot, source.socket.as_fd());
                source.advance();
            }
        }
        let mut all: Vec<_> = sources.iter_mut().map(|source| &mut source.arrivals).collect();
        Arrivals::share(&mut all);
    }

    /// Returns the error that explains why there is nothing to read; `None` if there is no error.
    fn fault_when_idle(&mut self) -> Option<DeviceError> {
        if let Some(lost) =
            sys::pending_error(self.socket.as_fd()).map(|error| self.device_error(error))
        {
            return lost;
        }
        // The kernel reports no error if an interface is deleted while it is down.
        self.is_gone |= self.is_down && is_deleted(self.socket.as_fd());
        self.is_gone.then(|| DeviceError::Gone(self.device.clone()))
    }

    /// Converts a socket error to the error for the caller; `None` if the link is down and may come back.
    fn device_error(&mut self, error: io::Error) -> Option<DeviceError> {
        let lost = device_error(&self.device, self.socket.as_fd(), error);
        self.is_gone |= lost.is_some();
        self.is_down |= lost.is_none();
        lost
    }

    /// Copies the last frame of a batch out of its slot if that slot is the newest in the ring. While the
    /// newest slot is lent, the kernel reports the ring as readable, and a wait for the next frame would
    /// return at once.
    fn free_newest(&self, batch: &mut [Frame<DeviceBuf>]) {
        let Some(spare) = &self.spare else { return };
        let is_newest = self.ring.filled(self.next_slot).is_none();
        if let Some(frame) = batch.last_mut().filter(|_| is_newest)
            && let Some(buffer) = spare.take()
        {
            frame.bytes.detach_into(buffer);
        }
    }

    fn count(&mut self, bytes: usize) {
        self.counters.frames += 1;
        self.counters.bytes += bytes as u64;
    }

    /// Receives a batch of at most `budget` frames. `look` inspects each frame in its slot first, and may
    /// consume the frame there.
    #[inline]
    fn take_batch(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
        mut look: impl FnMut(Frame<&[u8]>) -> Verdict,
    ) -> Result<Looked, DeviceError> {
        self.resume();
        let (before, mut looked, mut is_emptied) = (batch.len(), Looked::default(), false);
        let mut is_last_given = false;
        let mut discards = self.ring.slots();
        self.lacks_buffer = false;
        let mut scale = None;
        while looked.frames() < budget && discards > 0 {
            let Some(slot) = self.ring.filled(self.next_slot) else {
                is_emptied = true;
                break;
            };
            self.ring.prefetch_ahead_of(self.next_slot);
            let scale = *scale.get_or_insert_with(|| StampScale::take(self.empty_at));
            match take(slot, (self.socket.as_fd(), &self.large), scale, &mut look) {
                SlotOutcome::Frame(frame) => {
                    self.count(frame.bytes().len());
                    batch.push(frame);
                    looked.given += 1;
                    is_last_given = true;
                }
                SlotOutcome::Consumed(bytes) => {
                    self.count(bytes);
                    looked.consume_in_place();
                    is_last_given = false;
                }
                SlotOutcome::Own => discards -= 1,
                SlotOutcome::CutShort => {
                    self.counters.truncated += 1;
                    discards -= 1;
                }
                SlotOutcome::Invalid => {
                    self.counters.invalid += 1;
                    discards -= 1;
                }
                SlotOutcome::NoBuffer => {
                    self.lacks_buffer = true;
                    break;
                }
                SlotOutcome::Failed(error) => match self.device_error(error) {
                    Some(lost) => return Err(lost),
                    // The kernel reports this error once; the next read returns the frame.
                    None => {
                        discards -= 1;
                        continue;
                    }
                },
            }
            self.advance();
        }
        if let Some(scale) = scale.filter(|_| is_emptied) {
            self.empty_at = scale.taken_at();
        }
        if is_last_given {
            self.free_newest(&mut batch[before..]);
        }
        self.end_batch(looked)
    }

    fn end_batch(&mut self, looked: Looked) -> Result<Looked, DeviceError> {
        if looked.frames() == 0
            && let Some(error) = self.fault_when_idle()
        {
            return Err(error);
        }
        self.is_down &= looked.frames() == 0;
        Ok(looked)
    }

    fn advance(&mut self) {
        self.next_slot += 1;
        if self.next_slot == self.ring.slots() {
            self.next_slot = 0;
        }
    }
}

/// Checks that the options are within their limits.
fn check(name: &str, options: PacketOptions) -> Result<(), DeviceError> {
    let PacketOptions { ring_slots, large_buffers, .. } = options;
    if !(1..=MOST_SLOTS).contains(&ring_slots) {
        return Err(DeviceError::Usage(format!(
            "packet:{name}: ring_slots is {ring_slots}; it must be from 1 to {MOST_SLOTS}"
        )));
    }
    if large_buffers == 0 {
        return Err(DeviceError::Usage(format!(
            "packet:{name}: large_buffers is 0; it must be at least 1, or the first packet that is \
             larger than a slot would stop the ring"
        )));
    }
    Ok(())
}

/// The maximum number of slots in a ring; a larger ring would need gigabytes.
const MOST_SLOTS: u32 = 1 << 20;

/// The number of spare buffers. Each batch that empties the ring uses one buffer for as long as the last frame of
/// the batch is held: enough for 10,000 such batches a second, each held for 100 ms.
const SPARE_BUFFERS: usize = 1_024;

impl FrameSource for PacketSource {
    type Buffer = DeviceBuf;

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities { link: LinkKind::Ethernet, mtu: self.mtu, gives_gso: true }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        self.take_batch(batch, budget, |_| Verdict::Fallback).map(|looked| looked.given)
    }

    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        self.take_batch(batch, budget, look)
    }

    fn arrived(&mut self) -> Option<u64> {
        self.resume();
        self.arrivals.read()
    }

    fn gives_fewer(&mut self) -> bool {
        self.interface.feature(Feature::Gro).unwrap_or(true)
    }

    fn lends(&self) -> Option<usize> {
        Some(self.ring.slots() as usize)
    }

    fn queue_frames(&self) -> Option<usize> {
        Some(self.ring.slots() as usize)
    }

    fn expect_holds(&mut self) {
        self.spare.get_or_insert_with(|| Pool::new(SPARE_BUFFERS, self.ring.slot_bytes() as usize));
    }

    fn is_starved(&self) -> bool {
        self.lacks_buffer || self.ring.is_newest_lent(self.next_slot)
    }

    fn counters(&mut self) -> SourceCounters {
        self.resume();
        self.counters.ring_drops = self.arrivals.drops();
        self.counters
    }
}

impl SystemSource for PacketSource {
    fn discard_before(&mut self, instant: Instant) {
        // Nothing but the last source of its queue has received what is there.
        if self.must_resume {
            return;
        }
        let scale = StampScale::take(self.empty_at);
        while let Some(slot) = self.ring.filled(self.next_slot)
            && scale.arrival(slot.stamp_ns()) < instant
        {
            discard(slot, self.socket.as_fd());
            self.arrivals.discard();
            self.advance();
        }
    }

    fn leave(&mut self) {
        // A source that was never used leaves the place as it is.
        if let Some(queue) = self.queue.take().filter(|_| !self.must_resume) {
            let SourceCounters { frames, ring_drops, truncated, invalid, .. } = self.counters;
            let (counted, before) = self.arrivals.state();
            let accounted = before + frames + ring_drops + truncated + invalid;
            let place = Place { slot: self.next_slot, accounted, ..Place::default() };
            queue.leave(place, (counted, ring_drops));
        }
    }

    fn hardware_address(&self) -> Option<[u8; 6]> {
        self.interface.hardware_address().ok()
    }
}

impl Drop for PacketSource {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Descriptors for PacketSource {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.as_fd());
    }
}

impl AsFd for PacketSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests;
