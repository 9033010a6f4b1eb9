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

use crate::recent::RecentFrames;

/// The queue of one device.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Frames that it keeps; `None` if it has no limit.
    frames: Option<u64>,
    mtu: u32,
    recent: RecentFrames,
    /// The windows of all connections, in bytes. Only a guide: two threads may both take the last of it.
    offered: AtomicU64,
}

impl Queue {
    /// The queue of a device that keeps `frames` frames with up to `mtu` bytes; `None` if that is not known.
    pub(crate) fn new(frames: Option<usize>, mtu: u32) -> Self {
        let (frames, recent) = (frames.map(|frames| frames as u64), RecentFrames::new(mtu));
        Self { frames, mtu, recent, offered: AtomicU64::new(0) }
    }

    /// How large its frames have been lately.
    pub(crate) const fn recent(&self) -> &RecentFrames {
        &self.recent
    }

    /// Bytes of text that may be on their way to it; `u64::MAX` if it has no limit.
    fn room(&self) -> u64 {
        // Half of it is for what comes beside text, for text that is read late, and for the least windows of many.
        let of = |frames: u64, bytes: u32| frames * u64::from(bytes) / 2;
        let Some(frames) = self.frames else { return u64::MAX };
        let room = of(frames, self.recent.bytes());
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
/// Frames that are larger than a slot wait in a socket's queue, whose 32 MiB also count what the kernel needs for each.
const MOST_LARGE_BYTES: u64 = 16 << 20;
/// Of 10 Gbit/s.
const BYTES_IN_EIGHT_NS: u128 = 10;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use rxo_frame::{Frame, Gso, GsoKind, Instant};

    use super::*;

    /// What a packet socket's ring has by default.
    fn ring() -> Queue {
        Queue::new(Some(8_192), 1_500)
    }

    fn gso_frame(bytes: usize) -> Frame<Vec<u8>> {
        let size = NonZeroU16::new(1_448).unwrap();
        let gso = Some(Gso::new(GsoKind::TcpV4, size));
        Frame { gso, ..Frame::new(vec![0; bytes], Instant::ZERO) }
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
        (0..100).for_each(|_| queue.recent.came(&gso_frame(4 * 1_500)));
        assert_eq!(queue.room(), MOST_LARGE_BYTES);
        (0..100).for_each(|_| queue.recent.came(&gso_frame(2 * 1_500)));
        assert_eq!(queue.room(), 2 * slots);
        (0..100).for_each(|_| queue.recent.came(&Frame::new(vec![0; 66], Instant::ZERO)));
        assert_eq!(queue.room(), slots, "never less than for full frames");
        let larger = Queue::new(Some(1 << 20), 1_500);
        assert!(larger.room() > MOST_LARGE_BYTES);
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
