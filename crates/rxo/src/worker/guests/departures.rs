//! Departures: frames of guests that wait for free space at the nic, in a queue for each guest.
//!
//! This module is separate from the queues between threads (lanes), so that a guest's frames for other guests
//! do not wait behind its frames for the nic. Contract: the frames of each guest keep their order, and the
//! queues are served in fair turns by bytes. A guest whose queue is full is not read, so its own rings fill up.
//! If the nic has accepted nothing for [`STUCK`], frames that exceed the queue are dropped and counted, and the
//! guest is read again.

use std::collections::VecDeque;
use std::time::Duration;

use rxo_frame::{Frame, Instant};

use super::fair::FairTurns;
use super::lane::Copied;
use super::side::FRAME_COST_BYTES;

/// The time without progress after which a full nic counts as stuck: senders have noticed a loss by then.
pub(super) const STUCK: Duration = Duration::from_millis(100);
/// The maximum number of waiting frames of a guest: as many as the hub, the thread that forwards between
/// guests, passes on in a turn.
const MOST_FRAMES: usize = 64;
const MOST_BYTES: usize = 512 << 10;

pub(super) struct Departures {
    queues: Vec<Queue>,
    fair: FairTurns,
    /// The number of frames of all guests that wait for the nic.
    waiting: usize,
    /// The number of frames that were dropped because the nic accepted nothing for too long.
    pub(super) dropped: u64,
    /// The number of frames that a full nic has sent so far, and the time since which this number has not
    /// changed; `None` if the nic has free space.
    blocked: Option<(u64, Instant)>,
    is_stuck: bool,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Frame<Copied>>,
    bytes: usize,
}

impl Queue {
    fn is_full(&self) -> bool {
        self.frames.len() == MOST_FRAMES || self.bytes >= MOST_BYTES
    }
}

impl Departures {
    pub(super) fn new(guests: usize) -> Self {
        Self {
            queues: (0..guests).map(|_| Queue::default()).collect(),
            fair: FairTurns::new(guests),
            waiting: 0,
            dropped: 0,
            blocked: None,
            is_stuck: false,
        }
    }

    /// Records the number of frames that a full nic has sent so far; `None` if the nic has free space.
    pub(super) fn observe(&mut self, sent_frames: Option<u64>, now: Instant) {
        let same = self.blocked.filter(|(before, _)| sent_frames == Some(*before));
        self.blocked = same.or(sent_frames.map(|frames| (frames, now)));
        self.is_stuck = self.stuck_at().is_some_and(|at| now >= at);
    }

    /// Returns `true` if no frames wait.
    pub(super) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Returns the number of waiting frames.
    pub(super) const fn len(&self) -> usize {
        self.waiting
    }

    /// Returns `true` if frames of the guest with index `n` should be read.
    pub(super) fn reads(&self, n: usize) -> bool {
        self.is_stuck || !self.queues[n].is_full()
    }

    /// Returns the time from which guests with full queues are read although the nic accepts nothing; `None`
    /// if the nic has free space.
    pub(super) fn stuck_at(&self) -> Option<Instant> {
        self.blocked.map(|(_, since)| since + STUCK)
    }

    /// Queues a frame of the guest with index `n` for the nic. Returns `false` if the frame is dropped.
    pub(super) fn push(&mut self, n: usize, frame: Frame<Copied>) -> bool {
        let queue = &mut self.queues[n];
        if queue.is_full() {
            self.dropped += 1;
            return false;
        }
        queue.bytes += frame.bytes().len();
        queue.frames.push_back(frame);
        self.waiting += 1;
        true
    }

    /// Removes and returns the frame that is sent to the nic next; `None` if no frame waits.
    pub(super) fn pop(&mut self) -> Option<Frame<Copied>> {
        let Self { queues, fair, .. } = self;
        let cost = |frame: &Frame<Copied>| frame.bytes().len() as u64 + FRAME_COST_BYTES;
        let n = fair.next(|n| queues[n].frames.front().map(cost))?;
        self.take(n)
    }

    /// Drops all frames that wait for the nic. Returns for each the index of its guest and its length in
    /// bytes.
    pub(super) fn abandon(&mut self) -> Vec<(usize, usize)> {
        let mut gone = Vec::with_capacity(self.waiting);
        for n in 0..self.queues.len() {
            while let Some(frame) = self.take(n) {
                self.dropped += 1;
                gone.push((n, frame.bytes().len()));
            }
        }
        gone
    }

    fn take(&mut self, n: usize) -> Option<Frame<Copied>> {
        let frame = self.queues[n].frames.pop_front()?;
        self.queues[n].bytes -= frame.bytes().len();
        self.waiting -= 1;
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> Frame<Copied> {
        Frame::new(Copied::Shared(vec![0; bytes].into()), Instant::ZERO)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1_000)
    }

    #[test]
    fn a_full_queue_stops_its_guest_until_the_nic_is_stuck() {
        let mut departures = Departures::new(2);
        departures.observe(Some(7), at(0));
        while departures.reads(0) {
            assert!(departures.push(0, frame(60)));
        }
        assert_eq!((departures.len(), departures.reads(1)), (MOST_FRAMES, true));
        // One frame has left after 50 ms.
        for (ms, sent, reads) in [(50, 8, false), (149, 8, false), (150, 8, true)] {
            departures.observe(Some(sent), at(ms));
            assert_eq!(departures.reads(0), reads, "{ms}");
        }
        assert!(!departures.push(0, frame(60)));
        assert_eq!((departures.dropped, departures.len()), (1, MOST_FRAMES));
        departures.observe(None, at(900));
        departures.observe(Some(9), at(901));
        assert!(!departures.reads(0), "it had room in between");
    }

    #[test]
    fn large_frames_fill_a_queue_by_their_bytes() {
        let mut departures = Departures::new(1);
        while departures.reads(0) {
            departures.push(0, frame(64_000));
        }
        assert_eq!(departures.len(), MOST_BYTES.div_ceil(64_000));
        assert_eq!(departures.abandon().len(), MOST_BYTES.div_ceil(64_000));
        assert!(departures.is_empty() && departures.reads(0));
    }

    #[test]
    fn guests_leave_in_fair_turns_and_each_in_order() {
        let mut departures = Departures::new(2);
        (0..MOST_FRAMES).for_each(|n| _ = departures.push(0, frame(100 + n)));
        (0..3).for_each(|n| _ = departures.push(1, frame(1_000 + n)));
        let left: Vec<_> =
            std::iter::from_fn(|| departures.pop()).map(|it| it.bytes().len()).collect();
        let last_of_1 = left.iter().position(|bytes| *bytes == 1_002).unwrap();
        assert!(last_of_1 < 20, "{left:?}");
        for own in [100..1_000, 1_000..2_000] {
            assert!(left.iter().filter(|bytes| own.contains(*bytes)).is_sorted(), "{left:?}");
        }
        assert_eq!(left.len(), MOST_FRAMES + 3);
    }
}
