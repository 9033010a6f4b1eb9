//! Limits the bytes that wait in the device's queue to about what it sends in two milliseconds.
//!
//! A packet socket accepts megabytes at once, and a later packet must wait until all of this data is sent. So
//! the host keeps back data that the device would only queue, and can still choose the order of transmission.
//! Linux limits its own sockets in this way, too (TCP small queues). The limit follows the rate at which the
//! queue drains. The length of the queue is read only when all free space was used, and again when half of the
//! data should have been sent.
//!
//! The module is pure arithmetic on readings and times. Contract: a sink that cannot report the length of its
//! queue is never limited, unless it is blocked. If no data leaves the queue for [`MOST_STUCK`], the device
//! gets more data, which it may drop. This case is counted.

use std::time::Duration;

use rxo_frame::Instant;

/// A reading of the length of the device's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The sink does not report the length of its queue.
    Unknown,
    /// This many bytes wait in the queue.
    Queued(u64),
    /// The sink holds packets that the device did not accept yet.
    Blocked,
}

/// The limit of a device's queue, and the measured rate that determines it.
#[derive(Debug)]
pub(super) struct Drain {
    /// Number of bytes that may be sent before the queue is read again.
    room: u64,
    /// Maximum number of bytes that may wait in the queue.
    limit: u64,
    /// The rate at which the queue drains, in bytes per second; 0 while unknown.
    rate: u64,
    /// The time that a full queue takes to drain, in nanoseconds: the limit divided by the rate.
    span_ns: u64,
    waiting: Option<Waiting>,
    /// Number of times that more data was sent to the device although nothing had left its queue for
    /// [`MOST_STUCK`].
    pub(super) stalls: u64,
}

/// The state of waiting while the queue is full.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The last reading in bytes, and its time, if nothing was sent since. `None` directly after sending,
    /// because the time at which sending ends is unknown.
    from: Option<(u64, Instant)>,
    /// The time at which data last left the queue, or at which the wait began.
    moved_at: Instant,
    /// The time of the next reading.
    until: Instant,
}

impl Drain {
    pub(super) const fn new() -> Self {
        Self {
            room: 0,
            limit: FIRST_LIMIT_BYTES,
            rate: 0,
            span_ns: LEAST_SPAN_NS,
            waiting: None,
            stalls: 0,
        }
    }

    /// Returns the number of bytes that may be sent before the queue is read again.
    #[inline]
    pub(super) const fn room(&self) -> u64 {
        self.room
    }

    /// Returns `true` if the queue limits transmission. `true` until the first reading.
    #[inline]
    pub(super) const fn limits(&self) -> bool {
        self.room < UNLIMITED
    }

    /// Records that `bytes` bytes are sent to the device.
    #[inline]
    pub(super) const fn sent(&mut self, bytes: u64) {
        self.room = self.room.saturating_sub(bytes);
    }

    /// Returns the time of the next scheduled reading. `None` while the queue has free space: it is then read
    /// when the free space is used up.
    pub(super) const fn read_at(&self) -> Option<Instant> {
        match self.waiting {
            Some(Waiting { until, .. }) => Some(until),
            None => None,
        }
    }

    /// Returns `true` if a reading may show free space: the queue was not full, or some data should have been
    /// sent by now.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.waiting.is_none_or(|waiting| waiting.until <= now)
    }

    /// Returns the length of the largest GSO frame, in bytes, that leaves half of the queue to other
    /// connections.
    pub(super) fn largest_send(&self) -> u32 {
        u32::try_from(self.limit / 2).unwrap_or(u32::MAX)
    }

    /// Removes the limit of the queue.
    pub(super) const fn open(&mut self) {
        (self.room, self.waiting) = (u64::MAX, None);
    }

    /// Processes a reading of the queue. All data sent before must have been passed to the device.
    pub(super) fn read(&mut self, now: Instant, reading: Reading) {
        match reading {
            Reading::Unknown => self.open(),
            Reading::Blocked => self.wait(now, None, SHORT_WAIT),
            Reading::Queued(queued) => self.read_queued(now, queued),
        }
        self.free_if_stuck(now);
    }

    fn read_queued(&mut self, now: Instant, queued: u64) {
        let Some(waiting) = self.waiting else { return self.read_open(now, queued) };
        if let Some((before, since)) = waiting.from {
            if before <= queued {
                // The next reading is compared with the same earlier one, so that it includes all data that
                // left meanwhile.
                self.waiting = Some(Waiting { until: now + UNMOVED_WAIT, ..waiting });
                return;
            }
            self.waiting = Some(Waiting { moved_at: now, ..waiting });
            self.measure(before - queued, now.nanos_since(since), queued == 0);
        }
        if queued < self.limit {
            (self.room, self.waiting) = (self.limit - queued, None);
        } else {
            self.wait(now, Some(queued), self.time_to_half(queued));
        }
    }

    /// Processes a reading of a queue that was not full.
    fn read_open(&mut self, now: Instant, queued: u64) {
        if queued >= self.limit {
            // The time of this reading is unknown, because `now` is from before the transmission. The next
            // round reads again.
            self.room = 0;
            let until = now.plus_nanos(1);
            self.waiting = Some(Waiting { from: None, moved_at: now, until });
            return;
        }
        if self.rate == 0 && queued < self.limit / 4 {
            // Nearly all data left while it was being sent: the queue is not the bottleneck.
            self.limit = (self.limit * 2).min(MOST_UNMEASURED_BYTES);
        }
        self.room = self.limit - queued;
    }

    /// Updates the rate and the limit: `drained` bytes have left the queue in `time_ns` nanoseconds. If the
    /// queue is empty, the time may have been shorter.
    fn measure(&mut self, drained: u64, time_ns: u64, is_empty: bool) {
        let seen = u128::from(drained) * NS_A_SECOND / u128::from(time_ns.max(1));
        let seen = u64::try_from(seen).unwrap_or(u64::MAX);
        if !is_empty {
            self.rate = if self.rate == 0 { seen } else { self.rate - self.rate / 4 + seen / 4 };
            self.span_ns = (self.span_ns - self.span_ns / 64).max(LEAST_SPAN_NS);
        } else if seen > self.rate {
            // At most doubled at once: a shaper passes a burst that does not reflect its rate.
            self.rate = if self.rate == 0 { seen } else { seen.min(2 * self.rate) };
        } else {
            // The rate is right, but this thread came late and the device ran dry: allow a longer queue.
            self.span_ns = (self.span_ns + self.span_ns / 2).min(MOST_SPAN_NS);
        }
        let limit = u128::from(self.rate) * u128::from(self.span_ns) / NS_A_SECOND;
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        self.limit = limit.clamp(LEAST_LIMIT_BYTES, MOST_LIMIT_BYTES);
    }

    /// Returns the time until the queue shrinks from `queued` bytes to half of the limit.
    fn time_to_half(&self, queued: u64) -> Duration {
        let excess = u128::from(queued.saturating_sub(self.limit / 2));
        let time_ns = excess * NS_A_SECOND / u128::from(self.rate.max(1));
        let time = Duration::from_nanos(u64::try_from(time_ns).unwrap_or(u64::MAX));
        if self.rate == 0 { UNMEASURED_WAIT } else { time.clamp(LEAST_WAIT, MOST_WAIT) }
    }

    /// Starts or continues a wait for `time`; the time at which data last left the queue is kept.
    fn wait(&mut self, now: Instant, queued: Option<u64>, time: Duration) {
        let moved_at = self.waiting.map_or(now, |waiting| waiting.moved_at);
        let from = queued.map(|queued| (queued, now));
        self.room = 0;
        self.waiting = Some(Waiting { from, moved_at, until: now + time });
    }

    fn free_if_stuck(&mut self, now: Instant) {
        if self.waiting.is_some_and(|waiting| now.since(waiting.moved_at) >= MOST_STUCK) {
            self.stalls += 1;
            (self.room, self.waiting) = (STUCK_ROOM_BYTES, None);
        }
    }
}

/// The free space of a queue without a limit, in bytes.
const UNLIMITED: u64 = 1 << 62;
const NS_A_SECOND: u128 = 1_000_000_000;
/// The initial limit in bytes: twice the largest GSO frame, as the kernel counts it.
const FIRST_LIMIT_BYTES: u64 = 128 << 10;
/// The maximum limit in bytes while every reading so far found the queue nearly empty: enough to keep the
/// device busy until the next reading.
const MOST_UNMEASURED_BYTES: u64 = 1 << 20;
/// The minimum limit in bytes: two full Ethernet frames and two short ones, as the kernel counts them.
const LEAST_LIMIT_BYTES: u64 = 8 << 10;
/// The maximum limit in bytes: half of the packet socket's send buffer.
const MOST_LIMIT_BYTES: u64 = 16 << 20;
/// The minimum time, in nanoseconds, that a full queue takes to drain. Linux allows one millisecond, but a
/// thread wakes up later than a softirq.
const LEAST_SPAN_NS: u64 = 2_000_000;
/// The maximum time, in nanoseconds, that a full queue takes to drain. It applies to a busy machine, on which
/// threads wake up much later.
const MOST_SPAN_NS: u64 = 20_000_000;
const UNMEASURED_WAIT: Duration = Duration::from_micros(200);
const UNMOVED_WAIT: Duration = Duration::from_millis(1);
const LEAST_WAIT: Duration = Duration::from_micros(100);
const MOST_WAIT: Duration = Duration::from_millis(10);
/// The time until the next reading while the sink holds packets. The time at which the device accepts more
/// packets cannot be predicted.
const SHORT_WAIT: Duration = Duration::from_micros(500);
/// The time after which a device gets more data although no data leaves its queue. Half of the minimum
/// retransmission timeout, because TCP must be able to detect a broken path by itself.
const MOST_STUCK: Duration = Duration::from_millis(100);
/// The number of bytes that are sent to a stalled device after [`MOST_STUCK`]: the largest GSO frame.
const STUCK_ROOM_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests;
