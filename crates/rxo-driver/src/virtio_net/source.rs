//! Ring source: receives the frames that the other side of a ring sends.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rxo_device::{
    Descriptors, DeviceError, FrameSource, Look, Looked, SourceCapabilities, SourceCounters,
    Verdict,
};
use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, Instant, LinkKind};

use super::link::{Attended, Link, RingRead, Side};
use super::{Buffers, Shared};
use crate::buffer::{DeviceBuf, LARGE_BUFFER_BYTES};
use crate::clock;
use crate::device::SystemSource;
use crate::gate;
use crate::virtio_net::Events;

/// The maximum number of frames that one call discards. A discarded frame may consist of thousands of
/// descriptors, and other guests wait while they are processed.
const MOST_DISCARDS: usize = 64;

/// The maximum number of times that one call checks again for frames that arrived while it prepared to wait.
const MOST_CHECKS: usize = 4;

/// The interval between two checks of the sockets while frames arrive continuously or the caller reads none.
/// Rings without notifications are polled at this interval too.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The source over a side's receiving rings. GSO frames stay whole.
///
/// The arrival time of all frames of a batch is the time at which its first frame was read.
#[derive(Debug)]
pub(crate) struct RingSource<S> {
    side: Shared<S>,
    events: Arc<Events>,
    buffers: Buffers,
    most_buffers: usize,
    mtu: u32,
    counters: SourceCounters,
    invalid_headers: u64,
    /// `true` if the last call left frames in the ring for which no notification comes.
    has_more: bool,
    /// The instant of the next check of the sockets while frames arrive continuously, and of the next poll of
    /// rings without notifications.
    next_check: Instant,
}

impl<S: Side> RingSource<S> {
    /// Creates a source with memory for `buffers` frames of 64 KiB.
    pub(crate) fn new(side: &Shared<S>, buffers: usize, mtu: u32) -> Self {
        Self {
            side: side.clone(),
            events: side.events(),
            buffers: Buffers::new(buffers, LARGE_BUFFER_BYTES),
            most_buffers: buffers,
            mtu,
            counters: SourceCounters::default(),
            invalid_headers: 0,
            has_more: false,
            next_check: Instant::ZERO,
        }
    }

    /// Receives at most `budget` frames; stops early once the ring is empty. If `look` consumes a frame, the next
    /// frame uses its buffer. The ring buffer of each frame was already returned when the frame was copied.
    fn take(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
        look: &mut impl FnMut(Frame<&[u8]>) -> Verdict,
    ) -> Looked {
        let (mut looked, mut discards, mut arrived_at) = (Looked::default(), MOST_DISCARDS, None);
        let mut side = self.side.lock();
        let Some(link) = side.link() else { return looked };
        let (header_bytes, gives) = (link.header_bytes(), link.gives());
        while looked.frames() < budget && discards > 0 {
            let bytes = match link.take(&mut self.buffers) {
                RingRead::Frame(bytes) => bytes,
                RingRead::Discarded => {
                    discards -= 1;
                    continue;
                }
                RingRead::Nothing => break,
            };
            let read = self.buffers.content();
            let frame = read.get(header_bytes..bytes).unwrap_or_default();
            let described = gives.read(read, frame.len());
            let Some((checksum, gso)) = described.and_then(|facts| compared(frame, facts)) else {
                self.invalid_headers += 1;
                discards -= 1;
                continue;
            };
            let arrived_at: Instant = *arrived_at.get_or_insert_with(clock::now);
            self.counters.frames += 1;
            self.counters.bytes += frame.len() as u64;
            let frame = Frame { bytes: frame, arrived_at, checksum, gso, vlan: None };
            if look(frame) == Verdict::Consumed {
                looked.consumed += 1;
            } else {
                looked.given += 1;
                let mut buffer = self.buffers.take();
                buffer.truncate(bytes);
                let bytes = DeviceBuf::behind(header_bytes, buffer);
                batch.push(Frame { bytes, arrived_at, checksum, gso, vlan: None });
            }
        }
        link.finish_taking();
        looked
    }

    /// Receives at most `budget` frames; stops early if no frame arrives while this source prepares to wait.
    fn take_batch(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
        mut look: impl FnMut(Frame<&[u8]>) -> Verdict,
    ) -> Looked {
        let mut all = Looked::default();
        self.has_more = true;
        self.attend();
        for _ in 0..MOST_CHECKS {
            let Looked { given, consumed, .. } = self.take(batch, budget - all.frames(), &mut look);
            all.given += given;
            all.consumed += consumed;
            if all.frames() == budget {
                break;
            }
            self.has_more = self.prepare_to_wait();
            if !self.has_more {
                break;
            }
        }
        all
    }

    /// Checks the sockets and requests notifications. Returns `true` if frames may have arrived in the
    /// meantime.
    fn prepare_to_wait(&mut self) -> bool {
        let mut side = self.side.lock();
        let Attended { has_changed, .. } = side.attend();
        let has_more = side.link().is_some_and(Link::ask_for_notifications);
        has_changed || has_more
    }
}

/// Checks and corrects the description of a frame; `None` if the frame must be discarded. The description of an
/// ACK template is not checked here, but by the code that expands the template.
#[inline]
fn compared(
    frame: &[u8],
    metadata: (ChecksumStatus, Option<Gso>),
) -> Option<(ChecksumStatus, Option<Gso>)> {
    match metadata.1 {
        Some(Gso { kind: GsoKind::AckTemplate, .. }) => Some(metadata),
        _ => gate::compared(LinkKind::Ethernet, frame, metadata),
    }
}

impl<S: Side> FrameSource for RingSource<S> {
    type Buffer = DeviceBuf;

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities { link: LinkKind::Ethernet, mtu: self.mtu, gives_gso: true }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        Ok(self.take_batch(batch, budget, |_| Verdict::Fallback).given)
    }

    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        Ok(self.take_batch(batch, budget, look))
    }

    fn lends(&self) -> Option<usize> {
        Some(self.most_buffers)
    }

    fn is_starved(&self) -> bool {
        self.buffers.is_exhausted()
    }

    /// Returns [`Instant::ZERO`] if frames were left in the ring, because the other side notifies only of later
    /// frames. Otherwise returns the time of the next delayed notification or poll. While no other side is
    /// connected, that is the time of the next attempt to connect, because no event may wake the worker.
    fn poll_at(&self) -> Option<Instant> {
        if self.has_more && !self.is_starved() {
            return Some(Instant::ZERO);
        }
        let side = self.side.lock();
        let polled = side.is_polled().then_some(self.next_check);
        side.next_check().into_iter().chain(polled).min()
    }

    fn peers_gone(&self) -> u64 {
        self.side.lock().gone()
    }

    /// Checks the sockets while the caller receives no frames, because the other side waits for answers to its
    /// messages and for notifications. The sink cannot do this, because it is not called while there is nothing
    /// to send.
    fn attend(&mut self) {
        let (now, mut side) = (clock::now(), self.side.lock());
        if now >= self.next_check {
            self.next_check = now + CHECK_INTERVAL;
            let Attended { has_changed, is_notified } = side.attend();
            self.has_more |= has_changed || is_notified;
        }
        if let Some(link) = side.link() {
            link.notify_when_due();
        }
    }

    fn counters(&mut self) -> SourceCounters {
        let invalid = self.invalid_headers + self.side.lock().invalid();
        SourceCounters { invalid, ..self.counters }
    }
}

impl<S: Side> Descriptors for RingSource<S> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.events.as_fd());
    }
}

impl<S: Side> SystemSource for RingSource<S> {}

#[cfg(test)]
mod tests;
