//! A source like a card's: with a limited number of frames per poll, as from one that interrupts early, or with
//! arrival times of a virtual clock.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rxo::device::{
    Descriptors, DeviceError, FrameSource, Look, Looked, SourceCapabilities, SourceCounters,
};
use rxo::{Frame, Instant};
use rxo_driver::{DeviceBuf, DeviceSource, SystemSource};

/// A virtual clock, which its owner sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn set(&self, now: Instant) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// The frames of a device.
#[derive(Debug)]
pub(crate) struct Shaped {
    source: DeviceSource,
    /// The sizes of polls, and the number of frames in the next one.
    polls: Option<(Polls, usize)>,
    clock: Option<Clock>,
}

impl Shaped {
    /// Delivers frames in polls whose mean size is that of `polls`, as long as enough frames wait.
    pub(crate) fn polled(source: DeviceSource, mut polls: Polls) -> Self {
        let next = polls.next();
        Self { source, polls: Some((polls, next)), clock: None }
    }

    /// Stamps frames with the time of `clock`.
    pub(crate) fn stamped(source: DeviceSource, clock: Clock) -> Self {
        Self { source, polls: None, clock: Some(clock) }
    }

    fn limit(&self, budget: usize) -> usize {
        self.polls.map_or(budget, |(_, next)| next.min(budget))
    }

    /// Ends a poll that took `taken` frames; those that were not consumed are `new`.
    fn end_poll(&mut self, taken: usize, new: &mut [Frame<DeviceBuf>]) {
        if let Some((polls, next)) = self.polls.as_mut().filter(|_| taken > 0) {
            *next = polls.next();
        }
        if let Some(clock) = &self.clock {
            let now = clock.get();
            new.iter_mut().for_each(|frame| frame.arrived_at = now);
        }
    }
}

impl FrameSource for Shaped {
    type Buffer = DeviceBuf;

    fn capabilities(&self) -> SourceCapabilities {
        self.source.capabilities()
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let before = batch.len();
        let received = self.source.receive(batch, self.limit(budget))?;
        self.end_poll(received, &mut batch[before..]);
        Ok(received)
    }

    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<DeviceBuf>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        let (before, now) = (batch.len(), self.clock.as_ref().map(Clock::get));
        let mut look = |frame: Frame<&[u8]>| {
            look(Frame { arrived_at: now.unwrap_or(frame.arrived_at), ..frame })
        };
        let looked = self.source.receive_past(batch, self.limit(budget), &mut look)?;
        self.end_poll(looked.frames(), &mut batch[before..]);
        Ok(looked)
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

impl Descriptors for Shaped {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.source.visit_descriptors(visit);
    }
}

impl SystemSource for Shaped {
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
    use std::thread;
    use std::time::Duration;

    use rxo::live::Device;
    use rxo::{ChecksumStatus, FrameSink};
    use rxo_peers::Folder;
    use rxo_testkit::seg;

    use super::*;
    use crate::card::{self, Expansion};

    #[test]
    fn frames_come_in_portions_with_the_time_of_the_clock() {
        let folder = Folder::new("source").unwrap();
        let socket = folder.guest(0);
        let ring = card::ring(&socket, Duration::ZERO, Expansion::Host).unwrap();
        let Device { mut source, mut sink } = ring;
        let name = format!("virtio:{}", socket.display()).parse().unwrap();
        let host = thread::scope(|scope| {
            let host = scope.spawn(|| card::host_side(&name).unwrap());
            while !host.is_finished() {
                source.receive(&mut Vec::new(), 1).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
            host.join().unwrap()
        });
        let (bytes, clock) = (seg().bytes(), Clock::default());
        clock.set(Instant::from_micros(7));
        let frame = |_| Frame {
            checksum: ChecksumStatus::Verified,
            ..Frame::new(&bytes[..], Instant::ZERO)
        };
        sink.transmit((0..10).map(frame)).unwrap();
        let mut shaped = Shaped::polled(host.source, Polls::new(2.55));
        shaped.clock = Some(clock.clone());
        let (mut batch, mut sizes) = (Vec::new(), Vec::new());
        while batch.len() < 10 {
            sizes.push(shaped.receive(&mut batch, 64).unwrap());
        }
        sizes.retain(|size| *size > 0);
        assert_eq!(sizes, [2, 3, 2, 3]);
        assert!(batch.iter().all(|frame| frame.arrived_at == clock.get()));
    }

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
