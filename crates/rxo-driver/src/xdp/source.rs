//! Source: frames that arrive in one or several queues of an interface, in the chunks of their sockets.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rxo_device::{
    Descriptors, DeviceError, FrameSource, Look, Looked, SourceCapabilities, SourceCounters,
    Verdict,
};
use rxo_frame::{ChecksumStatus, Frame, Instant, LinkKind};

use super::receiver::{ChunkOutcome, Pools, Receiver};
use super::shared::Shared;
use super::{socket, unfinished};
use crate::buffer::DeviceBuf;
use crate::device::SystemSource;
use crate::interface::{Feature, Interface};
use crate::{clock, fault, sys};

/// The properties of a source that do not change while it is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Properties {
    pub(super) mtu: u32,
    pub(super) chunk_bytes: u32,
    /// The number of chunks of all queues together.
    pub(super) chunks: usize,
    /// `true` if frames come from memory of this machine, so that their checksums may be unfinished.
    pub(super) is_virtual: bool,
    /// The name of the receive method, for the user.
    pub(super) access: &'static str,
}

/// Receives the frames that arrive in an interface's queues, but not the frames that the interface sends. The
/// kernel's own stack receives none of these frames.
#[derive(Debug)]
pub(super) struct XdpSource {
    device: String,
    interface: Interface,
    receivers: Vec<Receiver>,
    pools: Pools,
    properties: Properties,
    counters: SourceCounters,
    /// The index of the queue that is read first.
    first: usize,
    is_gone: bool,
    lacks_buffer: bool,
    shared: Arc<Shared>,
}

impl XdpSource {
    pub(super) fn new(
        (device, interface): (&str, Interface),
        receivers: Vec<Receiver>,
        (properties, pools): (Properties, Pools),
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            device: device.to_owned(),
            interface,
            receivers,
            pools,
            properties,
            counters: SourceCounters::default(),
            first: 0,
            is_gone: false,
            lacks_buffer: false,
            shared,
        }
    }

    /// Receives a batch of at most `budget` frames from all queues, one after the other.
    fn take_batch(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
        mut look: impl FnMut(Frame<&[u8]>) -> Verdict,
    ) -> Result<Looked, DeviceError> {
        let mut looked = Looked::default();
        self.lacks_buffer = false;
        let count = self.receivers.len();
        let now = clock::now();
        for n in 0..count {
            let queue = (self.first + n) % count;
            self.take_queue((queue, now), batch, (&mut looked, budget), &mut look);
            if looked.frames() == budget {
                // The next batch begins with the next queue, so that no queue is starved.
                self.first = (queue + 1) % count;
                break;
            }
        }
        if looked.frames() == 0
            && let Some(error) = self.fault_when_idle()
        {
            return Err(error);
        }
        Ok(looked)
    }

    fn take_queue(
        &mut self,
        (queue, now): (usize, Instant),
        batch: &mut Vec<Frame<DeviceBuf>>,
        (looked, budget): (&mut Looked, usize),
        look: &mut impl FnMut(Frame<&[u8]>) -> Verdict,
    ) {
        let Self { receivers, pools, properties, shared, counters, interface, .. } = self;
        let describe = |bytes: &[u8]| properties.describe(bytes, now, (shared, interface));
        let receiver = &mut receivers[queue];
        // Discarded frames are limited, too, so that they cannot keep the worker busy.
        let mut left = budget - looked.frames() + properties.chunks;
        while looked.frames() < budget && left > 0 {
            left -= 1;
            let bytes = match receiver.take(pools, &describe, look) {
                ChunkOutcome::Nothing => break,
                ChunkOutcome::Frame(frame) => {
                    let bytes = frame.bytes().len();
                    batch.push(frame);
                    looked.given += 1;
                    bytes
                }
                ChunkOutcome::Consumed(bytes) => {
                    looked.consume_in_place();
                    bytes
                }
                ChunkOutcome::NoBuffer => {
                    self.lacks_buffer = true;
                    break;
                }
                discarded => {
                    let is_invalid = matches!(discarded, ChunkOutcome::Invalid);
                    counters.invalid += u64::from(is_invalid);
                    counters.truncated += u64::from(!is_invalid);
                    continue;
                }
            };
            counters.frames += 1;
            counters.bytes += bytes as u64;
        }
        receiver.refill();
    }

    /// Returns the error that explains why there is nothing to read; `None` if there is no error.
    fn fault_when_idle(&mut self) -> Option<DeviceError> {
        let mut errors = self.receivers.iter().map(|one| sys::pending_error(one.socket()));
        let error = errors.find_map(|error| error);
        // The kernel reports a deleted interface as one that is down.
        self.is_gone |= error.is_some() && self.interface.index().is_err();
        if self.is_gone {
            return Some(DeviceError::Gone(self.device.clone()));
        }
        fault::device_error(&self.device, false, error?)
    }
}

impl Properties {
    /// Returns the metadata of a frame that was received at `now`; `None` if the frame is longer than the MTU
    /// allows. Such a frame is counted, and the user is notified.
    #[inline]
    fn describe(
        &self,
        bytes: &[u8],
        now: Instant,
        (shared, interface): (&Shared, &Interface),
    ) -> Option<Frame<()>> {
        if bytes.len() > most_frame_bytes(self.mtu) && is_too_long(bytes, interface) {
            shared.note_too_long();
            return None;
        }
        let checksum = match self.is_virtual {
            true => unfinished::status(bytes),
            false => ChecksumStatus::Unknown,
        };
        if checksum.is_partial() {
            shared.note_unfinished();
        }
        Some(Frame { bytes: (), arrived_at: now, checksum, gso: None, vlan: None })
    }
}

/// Returns `true` if a frame is longer than the MTU, which may have changed since the device was opened.
#[cold]
fn is_too_long(bytes: &[u8], interface: &Interface) -> bool {
    interface.mtu().map_or(true, |mtu| bytes.len() > most_frame_bytes(mtu))
}

/// Returns the length of the longest frame that is not a GSO frame: it has an Ethernet header and two VLAN tags.
pub(super) const fn most_frame_bytes(mtu: u32) -> usize {
    mtu as usize + 14 + 8
}

impl FrameSource for XdpSource {
    type Buffer = DeviceBuf;

    fn capabilities(&self) -> SourceCapabilities {
        let (link, mtu) = (LinkKind::Ethernet, self.properties.mtu);
        SourceCapabilities { link, mtu, gives_gso: false }
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

    fn gives_fewer(&mut self) -> bool {
        self.interface.feature(Feature::Gro).unwrap_or(true)
    }

    fn lends(&self) -> Option<usize> {
        Some(self.properties.chunks)
    }

    fn queue_frames(&self) -> Option<usize> {
        Some(self.properties.chunks)
    }

    fn expect_holds(&mut self) {
        self.pools.expect_holds(self.properties.chunk_bytes as usize);
    }

    fn is_starved(&self) -> bool {
        self.lacks_buffer || self.receivers.iter().any(Receiver::is_out_of_chunks)
    }

    fn counters(&mut self) -> SourceCounters {
        let drops = self.receivers.iter().map(|one| socket::drops(one.socket()));
        self.counters.ring_drops = drops.sum();
        self.counters
    }
}

impl SystemSource for XdpSource {
    fn hardware_address(&self) -> Option<[u8; 6]> {
        self.interface.hardware_address().ok()
    }

    fn access(&self) -> Option<&'static str> {
        Some(self.properties.access)
    }
}

impl Descriptors for XdpSource {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.receivers.iter().for_each(|one| visit(one.socket()));
    }
}
