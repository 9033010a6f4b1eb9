//! The queue of frames for one guest.
//!
//! Bounded in frames and in copied bytes: a guest that does not take its frames loses them, and nobody
//! else waits. While it takes none, its frames are copied, because memory of the nic that stayed here
//! would be missing for the frames of others.

use std::collections::VecDeque;

use rxo_device::SourceCounters;
use rxo_frame::Frame;

use super::memory::{Memory, copied};

/// The most frames. It is several batches of the nic, because several guests may send to one.
const MOST_FRAMES: usize = 1_024;
/// The most copied bytes: 64 GSO frames of 64 KiB.
const MOST_COPIED_BYTES: usize = 64 * (64 << 10);

#[derive(Debug)]
pub(super) struct Queue<B> {
    frames: VecDeque<Frame<Memory<B>>>,
    copied_bytes: usize,
    /// Whether the guest has no room, so that frames wait here for more than a turn.
    is_blocked: bool,
    /// What was taken from it, and as `ring_drops` what found it full.
    pub(super) counters: SourceCounters,
}

impl<B: AsRef<[u8]>> Queue<B> {
    pub(super) fn new() -> Self {
        let frames = VecDeque::with_capacity(MOST_FRAMES);
        Self { frames, copied_bytes: 0, is_blocked: false, counters: SourceCounters::default() }
    }

    /// Appends a frame, or counts it if the queue is full.
    pub(super) fn push(&mut self, frame: Frame<Memory<B>>) {
        let frame = if self.is_blocked { copied(frame) } else { frame };
        let copied_bytes = self.copied_bytes + frame.bytes.copied_bytes();
        if self.frames.len() == MOST_FRAMES || copied_bytes > MOST_COPIED_BYTES {
            self.counters.ring_drops += 1;
            return;
        }
        self.copied_bytes = copied_bytes;
        self.frames.push_back(frame);
    }

    /// Moves at most `budget` frames to `batch`, oldest first. Returns how many.
    pub(super) fn take(&mut self, batch: &mut Vec<Frame<Memory<B>>>, budget: usize) -> usize {
        let count = self.frames.len().min(budget);
        for frame in self.frames.drain(..count) {
            self.counters.bytes += frame.bytes().len() as u64;
            self.copied_bytes -= frame.bytes.copied_bytes();
            batch.push(frame);
        }
        self.counters.frames += count as u64;
        count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Says whether the guest has room. Frames that must wait for it are copied.
    pub(super) fn set_blocked(&mut self, is_blocked: bool) {
        if is_blocked && !self.is_blocked {
            for frame in std::mem::take(&mut self.frames) {
                self.copied_bytes -= frame.bytes.copied_bytes();
                self.is_blocked = true;
                self.push(frame);
            }
        }
        self.is_blocked = is_blocked;
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::Instant;

    use super::*;

    fn frame(bytes: usize) -> Frame<Memory<Vec<u8>>> {
        Frame::new(Memory::Lent(vec![7; bytes]), Instant::ZERO)
    }

    fn take(queue: &mut Queue<Vec<u8>>) -> Vec<Frame<Memory<Vec<u8>>>> {
        let mut batch = Vec::new();
        queue.take(&mut batch, usize::MAX);
        batch
    }

    #[test]
    fn a_full_queue_counts_what_it_does_not_take() {
        for (bytes, most) in [(60, MOST_FRAMES), (64 << 10, 64)] {
            let mut queue = Queue::new();
            queue.set_blocked(true);
            (0..most + 5).for_each(|_| queue.push(frame(bytes)));
            assert_eq!((take(&mut queue).len(), queue.counters.ring_drops), (most, 5));
            queue.push(frame(bytes));
            assert_eq!(take(&mut queue).len(), 1, "there is room again");
        }
    }

    #[test]
    fn frames_that_wait_for_the_guest_keep_no_memory_of_the_nic() {
        let mut queue = Queue::new();
        queue.push(frame(60));
        queue.set_blocked(true);
        queue.push(frame(60));
        let waiting = take(&mut queue);
        assert!(waiting.iter().all(|frame| matches!(frame.bytes, Memory::Copied(_))));
        queue.set_blocked(false);
        queue.push(frame(60));
        assert!(matches!(take(&mut queue)[0].bytes, Memory::Lent(_)));
    }
}
