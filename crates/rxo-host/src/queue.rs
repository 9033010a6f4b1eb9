//! Limits the receive windows: the frames in flight should fit into the device's receive queue while the worker
//! is busy.
//!
//! The windows of many connections together can far exceed the device's receive ring. On a short path, all
//! windows are used at once whenever the worker pauses for a moment. Frames that arrive at a full ring are
//! lost, and are retransmitted after a timeout. So the first window of a connection depends on the part of the
//! ring that other windows leave free, and windows grow only into that part. A long path spreads the data of a
//! window over its round trip, so windows on a long path grow without this limit.
//!
//! A ring has a slot per frame, so it holds more data if peers send GSO frames. Such peers need large windows:
//! a peer sends frames of at most half a window, so small windows cause many small frames and ACKs. But frames
//! that a driver has coalesced crossed a link as single segments, and a queue on the path may be too short for
//! so many segments. Coalesced frames are smaller on average, so their windows get less space, and even less
//! after data was lost.
//!
//! The module is separate from `memory` because a ring limits data per time, not stored bytes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rxo_frame::Duration;

use crate::recent::RecentFrames;

/// The capacity of one device's receive queue, and the sum of the receive windows that depend on it.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Number of frames that the queue holds; `None` if that is unknown.
    frames: Option<u64>,
    mtu: u32,
    /// One connection may take the free part of the queue divided by this number in one step: [`MOST_PARTS`], or the
    /// maximum number of connections if that is smaller.
    parts: u64,
    recent: RecentFrames,
    /// The sum of the receive windows of all connections, in bytes. The sum is only approximate: two threads
    /// may both use the last free part.
    offered: AtomicU64,
    /// `true` if received data had a gap since the sum of the windows was last small.
    has_lost: AtomicBool,
}

impl Queue {
    /// Creates the state of a queue that holds `frames` frames of up to `mtu` bytes, for at most `sockets` connections;
    /// `None` sets no limit.
    pub(crate) fn new(frames: Option<usize>, mtu: u32, sockets: usize) -> Self {
        Self {
            frames: frames.map(|frames| frames as u64),
            mtu,
            parts: (sockets as u64).clamp(1, MOST_PARTS),
            recent: RecentFrames::new(mtu),
            offered: AtomicU64::new(0),
            has_lost: AtomicBool::new(false),
        }
    }

    /// Returns the recent frame size of the device.
    pub(crate) const fn recent(&self) -> &RecentFrames {
        &self.recent
    }

    /// Returns the number of data bytes that may be in flight to the queue; `u64::MAX` if the capacity of the
    /// queue is unknown.
    fn room(&self) -> u64 {
        // Half of the queue is reserved for other frames, for data that is read late, and for the minimum
        // windows of many connections.
        let of = |frames: u64, bytes: u32| frames * u64::from(bytes) / 2;
        let Some(frames) = self.frames else { return u64::MAX };
        let large = u64::from(self.recent.mean_bytes()) * LARGE_FRAMES;
        let most = if self.has_lost.load(Ordering::Relaxed) {
            LEAST_LARGE_BYTES
        } else {
            MOST_LARGE_BYTES
        };
        let large = large.clamp(LEAST_LARGE_BYTES, most);
        of(frames, self.recent.bytes()).min(large.max(of(frames, self.mtu)))
    }

    /// Returns the initial receive window, in bytes, of a connection that requests `asked` bytes.
    pub(crate) fn first(&self, asked: u32) -> u32 {
        asked.min(self.part().max(LEAST_WINDOW_BYTES))
    }

    /// Returns the window, in bytes, to which a connection may grow in one step from `has` towards `wanted`
    /// bytes. `round_trip` is the minimum round-trip time of the connection's path. If the path is so long that
    /// it spreads the data, the result is `wanted`.
    pub(crate) fn grown(&self, has: u32, wanted: u32, round_trip: Option<Duration>) -> u32 {
        if round_trip.is_some_and(|time| self.takes_at_most(time)) {
            return wanted;
        }
        wanted.min(has.saturating_add(self.part()).max(self.least_large_window()))
    }

    /// Returns the window, in bytes, to which each connection may always grow, independent of the number of
    /// connections. 0 unless peers send large GSO frames.
    fn least_large_window(&self) -> u32 {
        let is_large = self.recent.mean_bytes() >= 4 * self.mtu;
        let has_lost = self.has_lost.load(Ordering::Relaxed);
        if is_large && !has_lost && self.frames.is_some() { LEAST_LARGE_WINDOW } else { 0 }
    }

    /// Records that a window has changed from `before` to `after` bytes.
    pub(crate) fn changed(&self, before: u32, after: u32) {
        // May wrap, but the total of all changes is never negative.
        let change = u64::from(after).wrapping_sub(before.into());
        let had = self.offered.fetch_add(change, Ordering::Relaxed);
        if after < before && had.wrapping_add(change) < LEAST_LARGE_BYTES / 2 {
            self.has_lost.store(false, Ordering::Relaxed);
        }
    }

    /// Records that received data has a gap, on a path with the minimum round-trip time `round_trip`. On a
    /// short path, the sum of all windows may have been too large for a queue on the path.
    #[cold]
    pub(crate) fn lost(&self, round_trip: Option<Duration>) {
        if !round_trip.is_some_and(|time| self.takes_at_most(time)) {
            self.has_lost.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the maximum part of the free queue, in bytes, that one connection may take in one step.
    fn part(&self) -> u32 {
        let left = self.room().saturating_sub(self.offered.load(Ordering::Relaxed));
        u32::try_from(left / self.parts).unwrap_or(u32::MAX)
    }

    /// Returns `true` if a link of 10 Gbit/s takes no longer than `time` to fill the queue.
    fn takes_at_most(&self, time: Duration) -> bool {
        u128::from(self.room()) <= time.as_nanos() * BYTES_IN_EIGHT_NS / 8
    }
}

/// The minimum window in bytes: the data that a peer may send before the first ACK (RFC 6928, section 2).
const LEAST_WINDOW_BYTES: u32 = 16 << 10;
/// The window in bytes to which each connection may grow if peers send large GSO frames.
const LEAST_LARGE_WINDOW: u32 = 64 << 10;
const MOST_PARTS: u64 = 64;
/// The maximum number of data bytes in flight as frames larger than a slot. Such frames wait in a socket's
/// queue of 64 MiB (the kernel doubles the requested size), which also includes the kernel's overhead per
/// frame.
const MOST_LARGE_BYTES: u64 = 48 << 20;
/// The number of frames larger than a slot that may be in flight, within [`MOST_LARGE_BYTES`] and
/// [`LEAST_LARGE_BYTES`].
const LARGE_FRAMES: u64 = 2_048;
/// The number of data bytes that may always be in flight as frames larger than a slot. After data was lost,
/// this number is also the maximum.
const LEAST_LARGE_BYTES: u64 = 16 << 20;
/// Number of bytes that a link of 10 Gbit/s carries in 8 ns.
const BYTES_IN_EIGHT_NS: u128 = 10;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use rxo_frame::{Frame, Gso, GsoKind, Instant};

    use super::*;

    /// Returns the default ring of a packet socket: 8,192 slots.
    fn ring() -> Queue {
        Queue::new(Some(8_192), 1_500, 16_384)
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
        let came = |bytes| (0..1_000).for_each(|_| queue.recent.record(&gso_frame(bytes)));
        came(1 << 15);
        assert_eq!(queue.room(), MOST_LARGE_BYTES);
        came(10 << 10);
        assert_eq!(queue.room(), LARGE_FRAMES * (10 << 10));
        came(4 * 1_500);
        assert_eq!(queue.room(), LEAST_LARGE_BYTES);
        came(2 * 1_500);
        assert_eq!(queue.room(), 2 * slots);
        (0..100).for_each(|_| queue.recent.record(&Frame::new(vec![0; 66], Instant::ZERO)));
        assert_eq!(queue.room(), slots, "never less than for full frames");
        let larger = Queue::new(Some(1 << 20), 1_500, 16_384);
        assert!(larger.room() > MOST_LARGE_BYTES);
    }

    #[test]
    fn missing_text_takes_room_until_windows_are_small_again() {
        let (queue, near) = (ring(), Some(Duration::from_micros(100)));
        (0..1_000).for_each(|_| queue.recent.record(&gso_frame(1 << 16)));
        queue.changed(0, 40 << 20);
        queue.lost(Some(Duration::from_secs(1)));
        assert_eq!(queue.room(), MOST_LARGE_BYTES, "on a long path that says nothing of the ring");
        for round_trip in [near, None] {
            queue.lost(round_trip);
            assert_eq!(queue.room(), LEAST_LARGE_BYTES);
            assert_eq!(queue.grown(64 << 10, 6 << 20, near), 64 << 10);
            queue.changed(40 << 20, 16 << 20);
            assert_eq!(queue.room(), LEAST_LARGE_BYTES);
            queue.changed(16 << 20, 1 << 20);
            assert_eq!(queue.room(), MOST_LARGE_BYTES);
            queue.changed(1 << 20, 40 << 20);
        }
    }

    #[test]
    fn where_large_frames_come_each_window_may_grow_until_text_is_missing() {
        let (queue, near) = (ring(), Some(Duration::from_micros(100)));
        queue.changed(0, 2_000 * LEAST_WINDOW_BYTES);
        let grown = || queue.grown(LEAST_WINDOW_BYTES, 6 << 20, near);
        assert_eq!(grown(), LEAST_WINDOW_BYTES);
        (0..1_000).for_each(|_| queue.recent.record(&gso_frame(5 * 1_500)));
        assert_eq!(grown(), LEAST_LARGE_WINDOW);
        assert_eq!(queue.grown(LEAST_LARGE_WINDOW, 6 << 20, near), LEAST_LARGE_WINDOW);
        queue.lost(near);
        assert_eq!(grown(), LEAST_WINDOW_BYTES);
    }

    /// Such as a receiver of a cast: its window is what it asks for, and not a share for connections that cannot exist.
    #[test]
    fn a_host_of_few_connections_gives_each_more() {
        for (sockets, window) in [(1, 2 << 20), (4, 1_536_000), (64, 96_000), (16_384, 96_000)] {
            assert_eq!(Queue::new(Some(8_192), 1_500, sockets).first(2 << 20), window, "{sockets}");
        }
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

    /// The ring holds 6.1 MB, which take 4.9 ms at 10 Gbit/s.
    #[test]
    fn on_a_long_path_they_grow_as_they_need() {
        let queue = ring();
        queue.changed(0, 12 << 20);
        let grown = |ms| queue.grown(64 << 10, 6 << 20, Some(Duration::from_millis(ms)));
        assert_eq!((grown(4), grown(5)), (64 << 10, 6 << 20));
    }

    #[test]
    fn a_device_without_a_limit_sets_none() {
        let queue = Queue::new(None, 1_500, 16_384);
        queue.changed(0, 6 << 20);
        assert_eq!(queue.first(64 << 10), 64 << 10);
        assert_eq!(queue.grown(64 << 10, 6 << 20, None), 6 << 20);
    }
}
