//! Devices of a simulated worker: a queue of frames that are there already, a sink that reads or copies, and its clock.

use std::hint::black_box;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rxo::device::{
    Descriptors, SinkCapabilities, SinkCounters, SourceCapabilities, SourceCounters,
};
use rxo::frame::LinkKind;
use rxo::worker::{Awake, Waiter, Wanted};
use rxo::{DeviceError, Frame, FrameSink, FrameSource, Gather, Instant};

const MTU: u32 = 1_500;
/// Where a sink copies to: more than a second-level cache, as the memory of a guest.
const ROOM_BYTES: usize = 4 << 20;

pub(super) struct Queue<'f> {
    frames: &'f [Frame<Vec<u8>>],
    next: usize,
    /// Frames that are still to come.
    left: usize,
    counters: SourceCounters,
}

impl<'f> Queue<'f> {
    pub(super) fn new(frames: &'f [Frame<Vec<u8>>], laps: usize) -> Self {
        Self { frames, next: 0, left: frames.len() * laps, counters: SourceCounters::default() }
    }

    pub(super) const fn left(&self) -> usize {
        self.left
    }
}

impl<'f> FrameSource for Queue<'f> {
    type Buffer = &'f [u8];

    fn capabilities(&self) -> SourceCapabilities {
        let link = LinkKind::Ethernet;
        SourceCapabilities { link, mtu: MTU, gives_gso: false }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<&'f [u8]>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let count = budget.min(self.left).min(self.frames.len() - self.next);
        let given = &self.frames[self.next..self.next + count];
        batch.extend(given.iter().map(Frame::borrowed));
        self.next = (self.next + count) % self.frames.len().max(1);
        self.left -= count;
        self.counters.frames += count as u64;
        Ok(count)
    }

    fn counters(&mut self) -> SourceCounters {
        self.counters
    }

    /// More frames are there at once.
    fn poll_at(&self) -> Option<Instant> {
        (self.left > 0).then_some(Instant::ZERO)
    }
}

impl Descriptors for Queue<'_> {
    fn visit_descriptors<'d>(&'d self, _: &mut dyn FnMut(BorrowedFd<'d>)) {}
}

pub(super) struct Sink {
    counters: SinkCounters,
    room: Vec<u8>,
    at: usize,
}

impl Sink {
    pub(super) fn new(is_copied: bool) -> Self {
        let room = vec![0; if is_copied { ROOM_BYTES } else { 0 }];
        Self { counters: SinkCounters::default(), room, at: 0 }
    }

    fn copy(&mut self, piece: &[u8]) {
        if self.at + piece.len() > self.room.len() {
            self.at = 0;
        }
        self.room[self.at..self.at + piece.len()].copy_from_slice(piece);
        self.at += piece.len();
    }
}

impl FrameSink for Sink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities::with_gso(LinkKind::Ethernet, MTU)
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        for packet in batch {
            self.counters.packets += 1;
            self.counters.frames += packet.frame_count() as u64;
            if self.room.is_empty() {
                black_box((packet.byte_len(), packet.offload()));
            } else {
                packet.for_each_slice(|piece| self.copy(piece));
            }
        }
        Ok(())
    }

    fn counters(&self) -> SinkCounters {
        self.counters
    }
}

impl Descriptors for Sink {
    fn visit_descriptors<'d>(&'d self, _: &mut dyn FnMut(BorrowedFd<'d>)) {}
}

/// A clock that goes on with each reading, and ends the run when the worker would wait.
pub(super) struct Clock<'s> {
    now: Instant,
    stop: &'s AtomicBool,
}

impl<'s> Clock<'s> {
    pub(super) const fn new(stop: &'s AtomicBool) -> Self {
        Self { now: Instant::ZERO, stop }
    }
}

impl<NI, NO, HI, HO> Waiter<NI, NO, HI, HO> for Clock<'_> {
    fn now(&mut self) -> Instant {
        self.now = self.now + Duration::from_micros(10);
        self.now
    }

    fn cpu_time(&mut self) -> Duration {
        Duration::ZERO
    }

    fn pause(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn wait(&mut self, _: Wanted<'_, NI, NO, HI, HO>, _: Duration) -> Result<Awake, DeviceError> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(Awake::NONE)
    }
}
