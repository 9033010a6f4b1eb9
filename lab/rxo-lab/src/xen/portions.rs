//! A source with a limited number of frames per poll, like a card that interrupts early.

use std::os::fd::BorrowedFd;

use rxo::device::{Descriptors, DeviceError, FrameSource, SourceCapabilities, SourceCounters};
use rxo::{Frame, Instant};
use rxo_driver::{DeviceBuf, DeviceSource, SystemSource};

use super::traffic::Polls;

/// Delivers the frames of `source` in polls whose mean size is that of `polls`, as long as enough frames
/// wait.
#[derive(Debug)]
pub(super) struct Portions {
    source: DeviceSource,
    polls: Polls,
    /// Number of frames in the next poll.
    next: usize,
}

impl Portions {
    pub(super) fn new(source: DeviceSource, mut polls: Polls) -> Self {
        let next = polls.next();
        Self { source, polls, next }
    }
}

impl FrameSource for Portions {
    type Buffer = DeviceBuf;

    fn capabilities(&self) -> SourceCapabilities {
        self.source.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let received = self.source.receive(batch, self.next.min(budget))?;
        if received > 0 {
            self.next = self.polls.next();
        }
        Ok(received)
    }

    fn counters(&mut self) -> SourceCounters {
        self.source.counters()
    }

    fn lends(&self) -> Option<usize> {
        self.source.lends()
    }

    fn expect_holds(&mut self) {
        self.source.expect_holds();
    }

    fn is_starved(&self) -> bool {
        self.source.is_starved()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.source.poll_at()
    }

    fn attend(&mut self) {
        self.source.attend();
    }
}

impl Descriptors for Portions {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.source.visit_descriptors(visit);
    }
}

impl SystemSource for Portions {
    fn discard_before(&mut self, instant: Instant) {
        self.source.discard_before(instant);
    }

    fn hardware_address(&self) -> Option<[u8; 6]> {
        self.source.hardware_address()
    }
}
