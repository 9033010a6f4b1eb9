//! Queue of frames for one guest.
//!
//! The queue is bounded in frames and in copied bytes: a guest that does not read its frames loses them, and
//! nobody else waits. While the guest is blocked, its frames are copied, because the nic's memory would
//! otherwise be missing for frames of others.

use std::collections::VecDeque;

use rxo_device::SourceCounters;
use rxo_frame::Frame;

/// The greatest number of frames in a queue: several batches of the nic, because several guests may send to
/// one.
pub(super) const MOST_FRAMES: usize = 1_024;
/// The greatest number of bytes in the copied frames of a queue: 64 GSO frames of 64 KiB.
const MOST_COPIED_BYTES: usize = 64 * (64 << 10);

#[derive(Debug)]
pub(super) struct Queue<B> {
    frames: VecDeque<Waiting<B>>,
    copied_bytes: usize,
    /// `true` if the guest's device is full, so that frames wait here for more than one turn.
    is_blocked: bool,
    /// The number of frames read from the queue, of frames that found it full (`ring_drops`), and of bytes
    /// copied into it.
    pub(super) counters: SourceCounters,
}

/// A frame in the queue.
#[derive(Debug)]
struct Waiting<B> {
    frame: Frame<B>,
    /// The length of the frame in bytes if it is a copy; 0 if it is still in the memory of the device that
    /// received it.
    copied_bytes: usize,
}

impl<B: AsRef<[u8]> + From<Vec<u8>>> Queue<B> {
    pub(super) fn new() -> Self {
        let frames = VecDeque::with_capacity(MOST_FRAMES);
        Self { frames, copied_bytes: 0, is_blocked: false, counters: SourceCounters::default() }
    }

    /// Appends a frame in the memory of its device; counts it as dropped if the queue is full.
    pub(super) fn push(&mut self, frame: Frame<B>) {
        if self.is_blocked {
            self.push_copy(frame.bytes().len(), || copied(&frame));
        } else {
            _ = self.push_made(0, || frame);
        }
    }

    /// Appends a copy of a frame of `bytes` bytes. If the queue is full, copies nothing and counts a drop.
    pub(super) fn push_copy(&mut self, bytes: usize, copy: impl FnOnce() -> Frame<Vec<u8>>) {
        if let Some(copied_bytes) = self.push_made(bytes, || copy().map_bytes(B::from)) {
            self.counters.bytes_copied_aside += copied_bytes as u64;
        }
    }

    /// Appends the frame that `make` returns, a copy of at most `most_copied` bytes. Returns the bytes
    /// copied; `None` if the queue is full.
    fn push_made(&mut self, most_copied: usize, make: impl FnOnce() -> Frame<B>) -> Option<usize> {
        let is_full = self.frames.len() == MOST_FRAMES;
        if is_full || self.copied_bytes + most_copied > MOST_COPIED_BYTES {
            self.counters.ring_drops += 1;
            return None;
        }
        let frame = make();
        let copied_bytes = if most_copied > 0 { frame.bytes().len() } else { 0 };
        self.copied_bytes += copied_bytes;
        self.frames.push_back(Waiting { frame, copied_bytes });
        Some(copied_bytes)
    }

    /// Drops all frames and counts them.
    pub(super) fn clear(&mut self) {
        self.counters.ring_drops += self.frames.len() as u64;
        self.frames.clear();
        self.copied_bytes = 0;
    }

    /// Moves at most `budget` frames to `batch`, oldest first. Returns their number.
    pub(super) fn take(&mut self, batch: &mut Vec<Frame<B>>, budget: usize) -> usize {
        let count = self.frames.len().min(budget);
        for Waiting { frame, copied_bytes } in self.frames.drain(..count) {
            self.counters.bytes += frame.bytes().len() as u64;
            self.copied_bytes -= copied_bytes;
            batch.push(frame);
        }
        self.counters.frames += count as u64;
        count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Sets whether the guest's device is full. Frames that must wait for it are copied.
    pub(super) fn set_blocked(&mut self, is_blocked: bool) {
        if is_blocked && !self.is_blocked {
            self.copied_bytes = 0;
            for Waiting { frame, copied_bytes } in std::mem::take(&mut self.frames) {
                if copied_bytes > 0 {
                    _ = self.push_made(copied_bytes, || frame);
                } else {
                    self.push_copy(frame.bytes().len(), || copied(&frame));
                }
            }
        }
        self.is_blocked = is_blocked;
    }
}

/// Returns a copy of `frame`.
fn copied<B: AsRef<[u8]>>(frame: &Frame<B>) -> Frame<Vec<u8>> {
    frame.with_bytes(frame.bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use rxo_frame::Instant;

    use super::*;

    fn frame(bytes: usize) -> Frame<Vec<u8>> {
        Frame::new(vec![7; bytes], Instant::ZERO)
    }

    fn take(queue: &mut Queue<Vec<u8>>) -> Vec<Frame<Vec<u8>>> {
        let mut batch = Vec::new();
        queue.take(&mut batch, usize::MAX);
        batch
    }

    #[test]
    fn a_full_queue_counts_what_it_does_not_take() {
        for (bytes, most) in [(60, MOST_FRAMES), (64 << 10, 64)] {
            let mut queue = Queue::<Vec<u8>>::new();
            queue.set_blocked(true);
            (0..most + 5).for_each(|_| queue.push(frame(bytes)));
            assert_eq!((take(&mut queue).len(), queue.counters.ring_drops), (most, 5));
            queue.push(frame(bytes));
            assert_eq!(take(&mut queue).len(), 1, "there is room again");
        }
    }

    /// If a full queue copied frames, a flood would cost one copy for each guest that does not read.
    #[test]
    fn a_full_queue_copies_nothing() {
        for (bytes, most) in [(60, MOST_FRAMES), (64 << 10, 64)] {
            let mut queue = Queue::<Vec<u8>>::new();
            (0..most).for_each(|_| queue.push_copy(bytes, || frame(bytes)));
            queue.push_copy(bytes, || unreachable!("it is full"));
            assert_eq!((take(&mut queue).len(), queue.counters.ring_drops), (most, 1));
        }
    }

    /// A guest that becomes blocked has both frames of the nic and copies in its queue.
    #[test]
    fn a_queue_that_is_copied_keeps_its_order_and_its_bounds() {
        let mut queue = Queue::<Vec<u8>>::new();
        for _ in 0..40 {
            queue.push(frame(64 << 10));
            queue.push_copy(64 << 10, || frame(64 << 10));
        }
        queue.set_blocked(true);
        assert_eq!((take(&mut queue).len(), queue.counters.ring_drops), (64, 16));
        assert_eq!(queue.copied_bytes, 0);
    }

    #[test]
    fn each_copy_is_counted_once() {
        let mut queue = Queue::<Vec<u8>>::new();
        queue.push(frame(60));
        queue.push_copy(70, || frame(70));
        assert_eq!(queue.counters.bytes_copied_aside, 70, "memory of the nic is not copied");
        queue.set_blocked(true);
        assert_eq!(queue.counters.bytes_copied_aside, 70 + 60, "now it is");
        queue.push(frame(80));
        take(&mut queue);
        assert_eq!(queue.counters.bytes_copied_aside, 70 + 60 + 80);
    }

    #[test]
    fn what_is_cleared_is_counted() {
        let mut queue = Queue::<Vec<u8>>::new();
        queue.set_blocked(true);
        (0..3).for_each(|_| queue.push(frame(60)));
        queue.clear();
        assert_eq!((queue.is_empty(), queue.copied_bytes, queue.counters.ring_drops), (true, 0, 3));
    }

    #[test]
    fn frames_that_wait_for_the_guest_keep_no_memory_of_the_nic() {
        let mut queue = Queue::<Vec<u8>>::new();
        queue.push(frame(60));
        queue.set_blocked(true);
        queue.push(frame(60));
        assert_eq!(queue.copied_bytes, 2 * 60);
        take(&mut queue);
        queue.set_blocked(false);
        queue.push(frame(60));
        assert_eq!((queue.copied_bytes, take(&mut queue).len()), (0, 1));
    }
}
