//! What the device can hold until it is read, and what peers may send at once.
//!
//! The windows of many connections together can be far more than a ring has room for. On a short path all of them
//! are used at once, whenever the worker is away for a moment; what finds no room is lost, and comes again after a
//! timeout. So the first window of a connection follows what the windows before it have left of the ring, and windows
//! grow only into that. A long path spreads what its windows allow over its round trip, so they grow as they
//! need. A ring has a slot for each frame, so where peers send GSO frames it has room for more. Separate from memory because a
//! ring is a matter of time, not of bytes that are kept.

use std::sync::atomic::{AtomicU64, Ordering};

use rxo_frame::Duration;

/// The queue of one device.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Frames that it keeps; `None` if it has no limit.
    frames: Option<u64>,
    mtu: u64,
    /// Bytes of a frame as they came lately, from `mtu` to [`LARGEST_FRAME_BYTES`]. Only the worker writes it.
    frame_bytes: AtomicU64,
    /// The windows of all connections, in bytes. Only a guide: two threads may both take the last of it.
    offered: AtomicU64,
}

impl Queue {
    /// The queue of a device that keeps `frames` frames with up to `mtu` bytes; `None` if that is not known.
    pub(crate) fn new(frames: Option<usize>, mtu: u32) -> Self {
        let (frames, mtu) = (frames.map(|frames| frames as u64), u64::from(mtu));
        Self { frames, mtu, frame_bytes: AtomicU64::new(mtu), offered: AtomicU64::new(0) }
    }

    /// A frame of so many `bytes` has come, by itself or with others like it.
    #[inline]
    pub(crate) fn came(&self, bytes: usize) {
        let bytes = (bytes as u64).min(LARGEST_FRAME_BYTES).max(self.mtu);
        let before = self.frame_bytes.load(Ordering::Relaxed);
        if bytes != before {
            // Rounded away from `before`, so that frames that are all alike are soon the measure.
            let step = bytes.abs_diff(before).div_ceil(8);
            let now = if bytes > before { before + step } else { before - step };
            self.frame_bytes.store(now, Ordering::Relaxed);
        }
    }

    /// How many frames are a batch: `most`, or as many as a cache holds if GSO frames come. A device copies each into a
    /// buffer of 64 KiB, and the application reads it from there after the whole batch was received.
    pub(crate) fn batch_frames(&self, most: usize) -> usize {
        let bytes = self.frame_bytes.load(Ordering::Relaxed);
        if self.has_gso() { most.min((BATCH_BYTES / bytes).max(1) as usize) } else { most }
    }

    /// Whether GSO frames come.
    pub(crate) fn has_gso(&self) -> bool {
        self.frame_bytes.load(Ordering::Relaxed) > self.mtu
    }

    /// Bytes of text that may be on their way to it; `u64::MAX` if it has no limit.
    fn room(&self) -> u64 {
        // Half of it is for what comes beside text, for text that is read late, and for the least windows of many.
        let of = |frames: u64, bytes: u64| frames * bytes / 2;
        let Some(frames) = self.frames else { return u64::MAX };
        let room = of(frames, self.frame_bytes.load(Ordering::Relaxed));
        room.min(MOST_LARGE_BYTES.max(of(frames, self.mtu)))
    }

    /// The first window of a connection that asks for `asked` bytes.
    pub(crate) fn first(&self, asked: u32) -> u32 {
        asked.min(self.part().max(LEAST_WINDOW_BYTES))
    }

    /// The window, in bytes, to which one of `has` bytes may grow at a time towards `wanted`, if `round_trip` is the
    /// least of its path.
    pub(crate) fn grown(&self, has: u32, wanted: u32, round_trip: Option<Duration>) -> u32 {
        if round_trip.is_some_and(|time| self.takes_at_most(time)) {
            return wanted;
        }
        wanted.min(has.saturating_add(self.part()))
    }

    /// A window has changed from `before` to `after` bytes.
    pub(crate) fn changed(&self, before: u32, after: u32) {
        // Wraps, but the sum of all changes is never below zero.
        let change = u64::from(after).wrapping_sub(before.into());
        self.offered.fetch_add(change, Ordering::Relaxed);
    }

    /// What one connection may take at a time of what is left.
    fn part(&self) -> u32 {
        let left = self.room().saturating_sub(self.offered.load(Ordering::Relaxed));
        u32::try_from(left / PARTS).unwrap_or(u32::MAX)
    }

    /// Whether a link of 10 Gbit/s fills the queue in `time` or less.
    fn takes_at_most(&self, time: Duration) -> bool {
        u128::from(self.room()) <= time.as_nanos() * BYTES_IN_EIGHT_NS / 8
    }
}

/// RFC 6928, section 2: what a peer may send before the first acknowledgement.
const LEAST_WINDOW_BYTES: u32 = 16 << 10;
const PARTS: u64 = 64;
/// Two of the largest frames: half of the second level of cache of small processors.
const BATCH_BYTES: u64 = 128 << 10;
/// Of an IP packet.
const LARGEST_FRAME_BYTES: u64 = 1 << 16;
/// Frames that are larger than a slot wait in a socket's queue, whose 32 MiB also count what the kernel needs for each.
const MOST_LARGE_BYTES: u64 = 16 << 20;
/// Of 10 Gbit/s.
const BYTES_IN_EIGHT_NS: u128 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a packet socket's ring has by default.
    fn ring() -> Queue {
        Queue::new(Some(8_192), 1_500)
    }

    #[test]
    fn the_first_windows_of_many_fit_together() {
        let queue = ring();
        let windows: Vec<_> = (0..400)
            .map(|_| {
                let window = queue.first(64 << 10);
                queue.changed(0, window);
                window
            })
            .collect();
        assert_eq!((windows[0], windows[399]), (64 << 10, LEAST_WINDOW_BYTES));
        assert!(windows.is_sorted_by(|one, next| one >= next));
        let all: u64 = windows.iter().map(|&window| u64::from(window)).sum();
        assert!(all < 8_192 * 1_200, "{all} bytes");
    }

    #[test]
    fn where_gso_frames_come_there_is_room_for_more() {
        let queue = ring();
        let slots = queue.room();
        (0..100).for_each(|_| queue.came(4 * 1_500));
        assert_eq!(queue.room(), MOST_LARGE_BYTES);
        (0..100).for_each(|_| queue.came(2 * 1_500));
        assert_eq!(queue.room(), 2 * slots);
        (0..100).for_each(|_| queue.came(66));
        assert_eq!(queue.room(), slots, "never less than for full frames");
        let larger = Queue::new(Some(1 << 20), 1_500);
        assert!(larger.room() > MOST_LARGE_BYTES);
    }

    #[test]
    fn a_batch_of_gso_frames_fits_a_cache() {
        let queue = ring();
        assert_eq!(queue.batch_frames(256), 256);
        (0..100).for_each(|_| queue.came(1 << 16));
        assert_eq!((queue.batch_frames(256), queue.batch_frames(1)), (2, 1));
        (0..100).for_each(|_| queue.came(66));
        assert_eq!(queue.batch_frames(256), 256);
    }

    #[test]
    fn a_window_that_is_closed_leaves_room() {
        let queue = ring();
        let first = queue.part();
        queue.changed(0, 4 << 20);
        assert!(queue.part() < first);
        queue.changed(4 << 20, 0);
        assert_eq!(queue.part(), first);
    }

    #[test]
    fn on_a_short_path_windows_grow_into_what_is_left() {
        let (queue, near) = (ring(), Some(Duration::from_micros(100)));
        let mut windows = [64 << 10; 16];
        windows.iter().for_each(|&window| queue.changed(0, window));
        for _ in 0..1_000 {
            for window in &mut windows {
                let grown = queue.grown(*window, 6 << 20, near);
                queue.changed(*window, grown);
                *window = grown;
            }
        }
        let all: u64 = windows.iter().map(|&window| u64::from(window)).sum();
        assert!(all <= queue.room(), "{all} of {}", queue.room());
        assert!(windows.iter().all(|&window| window > 256 << 10), "{windows:?}");
    }

    /// 6.1 MB take 4.9 ms at 10 Gbit/s.
    #[test]
    fn on_a_long_path_they_grow_as_they_need() {
        let queue = ring();
        queue.changed(0, 12 << 20);
        let grown = |ms| queue.grown(64 << 10, 6 << 20, Some(Duration::from_millis(ms)));
        assert_eq!((grown(4), grown(5)), (64 << 10, 6 << 20));
    }

    #[test]
    fn a_device_without_a_limit_sets_none() {
        let queue = Queue::new(None, 1_500);
        queue.changed(0, 6 << 20);
        assert_eq!(queue.first(64 << 10), 64 << 10);
        assert_eq!(queue.grown(64 << 10, 6 << 20, None), 6 << 20);
    }
}
