//! A source with a limited number of frames per poll, like a card that interrupts early.

use std::os::fd::BorrowedFd;

use rxo::device::{Descriptors, DeviceError, FrameSource, SourceCapabilities, SourceCounters};
use rxo::{Frame, Instant};
use rxo_driver::{DeviceBuf, DeviceSource, SystemSource};

/// Delivers the frames of `source` in polls whose mean size is that of `polls`, as long as enough frames
/// wait.
#[derive(Debug)]
pub(crate) struct Portions {
    source: DeviceSource,
    polls: Polls,
    /// Number of frames in the next poll.
    next: usize,
}

impl Portions {
    pub(crate) fn new(source: DeviceSource, mut polls: Polls) -> Self {
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

/// The number of frames in each poll, with a given mean: 2.55 gives 2, 3, 2, 3 and so on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polls {
    frames_a_poll: f64,
    polls: u32,
}

impl Polls {
    /// Makes polls with a mean of `frames_a_poll`, which must be at least 1.
    pub(crate) const fn new(frames_a_poll: f64) -> Self {
        Self { frames_a_poll, polls: 0 }
    }

    /// Returns the number of frames in the next poll.
    pub(crate) fn next(&mut self) -> usize {
        let frames_by = |polls: u32| (f64::from(polls) * self.frames_a_poll) as usize;
        let before = frames_by(self.polls);
        self.polls += 1;
        frames_by(self.polls) - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_have_the_mean_that_is_asked_for() {
        for (mean, first) in [(1.0, [1, 1, 1]), (2.55, [2, 3, 2]), (32.0, [32; 3])] {
            let mut polls = Polls::new(mean);
            let frames: Vec<_> = (0..1_000).map(|_| polls.next()).collect();
            assert_eq!(frames[..3], first);
            assert!((frames.iter().sum::<usize>() as f64 / 1_000.0 - mean).abs() < 0.01);
            let least = mean.floor() as usize;
            assert!(frames.iter().all(|n| (least..=least + 1).contains(n)));
        }
    }
}
