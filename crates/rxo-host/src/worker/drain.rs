//! How much may wait in the device's queue: about what it sends in two milliseconds.
//!
//! A packet socket takes megabytes at once, and all of them leave before what comes next. So the host keeps text back
//! that the device would only queue, and can still choose what leaves first; Linux does the same for its own sockets
//! (TCP small queues). The limit follows the rate at which the queue was seen to drain. It is read only when so much was
//! sent as there was room for, and again when half of it should have left.
//!
//! Pure arithmetic on readings and times, hence by itself. Contract: a sink that cannot say what is queued is never
//! limited, unless it is blocked; and a device from which nothing leaves is given more after [`MOST_STUCK`], which is
//! counted, so that what it does with that decides, not the host.

use std::time::Duration;

use rxo_frame::Instant;

/// What the sink says of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// It cannot know.
    Unknown,
    /// So many bytes wait.
    Queued(u64),
    /// It keeps packets for which there was no room.
    Blocked,
}

/// The room of a device's queue.
#[derive(Debug)]
pub(super) struct Drain {
    /// Bytes that may be sent before the queue is read again.
    room: u64,
    /// What may wait in the queue, in bytes.
    limit: u64,
    /// Bytes a second; 0 while it is not known.
    rate: u64,
    /// The time in which the queue may drain, in nanoseconds.
    span_ns: u64,
    waiting: Option<Waiting>,
    /// How often a stuck device was given more.
    pub(super) stalls: u64,
}

/// The queue was full.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// What was queued then, and when. Nothing was sent since. `None` right after sending, whose time is not known.
    from: Option<(u64, Instant)>,
    /// When something last left, or the wait began.
    moved_at: Instant,
    /// When the queue is to be read.
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

    /// Bytes that may be sent before the queue is read again.
    #[inline]
    pub(super) const fn room(&self) -> u64 {
        self.room
    }

    /// Whether it limits what is sent. Not known before the first reading.
    #[inline]
    pub(super) const fn limits(&self) -> bool {
        self.room < UNLIMITED
    }

    /// Takes note that `bytes` are sent.
    #[inline]
    pub(super) const fn sent(&mut self, bytes: u64) {
        self.room = self.room.saturating_sub(bytes);
    }

    /// When the queue is to be read next; `None` if it need not be before there is something to send.
    pub(super) const fn read_at(&self) -> Option<Instant> {
        match self.waiting {
            Some(Waiting { until, .. }) => Some(until),
            None => None,
        }
    }

    /// Whether reading the queue may show room: it was not full, or something should have left it by now.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.waiting.is_none_or(|waiting| waiting.until <= now)
    }

    /// The largest GSO frame, in bytes, that leaves others half of the queue.
    pub(super) fn largest_send(&self) -> u32 {
        u32::try_from(self.limit / 2).unwrap_or(u32::MAX)
    }

    /// Limits nothing any more.
    pub(super) const fn open(&mut self) {
        (self.room, self.waiting) = (u64::MAX, None);
    }

    /// Takes a reading. All that was sent before has been given to the device.
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
                // The next reading is measured from the same one, so that it counts all that left meanwhile.
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

    /// The queue after sending.
    fn read_open(&mut self, now: Instant, queued: u64) {
        if queued >= self.limit {
            // The time of this reading is not known: `now` is from before the sending. The next turn reads again.
            self.room = 0;
            let until = now.plus_nanos(1);
            self.waiting = Some(Waiting { from: None, moved_at: now, until });
            return;
        }
        if self.rate == 0 && queued < self.limit / 4 {
            // Nearly all has left while it was sent: there is no queue to be kept short.
            self.limit = (self.limit * 2).min(MOST_UNMEASURED_BYTES);
        }
        self.room = self.limit - queued;
    }

    /// Learns from `drained` bytes in `time_ns`. If all have left, it may have been sooner.
    fn measure(&mut self, drained: u64, time_ns: u64, is_empty: bool) {
        let seen = u128::from(drained) * NS_A_SECOND / u128::from(time_ns.max(1));
        let seen = u64::try_from(seen).unwrap_or(u64::MAX);
        if !is_empty {
            self.rate = if self.rate == 0 { seen } else { self.rate - self.rate / 4 + seen / 4 };
            self.span_ns = (self.span_ns - self.span_ns / 64).max(LEAST_SPAN_NS);
        } else if seen > self.rate {
            // At most twice as much at once: a shaper lets a burst pass that says nothing of its rate.
            self.rate = if self.rate == 0 { seen } else { seen.min(2 * self.rate) };
        } else {
            // The rate is right, but this thread came late and the device had nothing to do.
            self.span_ns = (self.span_ns + self.span_ns / 2).min(MOST_SPAN_NS);
        }
        let limit = u128::from(self.rate) * u128::from(self.span_ns) / NS_A_SECOND;
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        self.limit = limit.clamp(LEAST_LIMIT_BYTES, MOST_LIMIT_BYTES);
    }

    /// The time until half of the limit is left of `queued` bytes.
    fn time_to_half(&self, queued: u64) -> Duration {
        let excess = u128::from(queued.saturating_sub(self.limit / 2));
        let time_ns = excess * NS_A_SECOND / u128::from(self.rate.max(1));
        let time = Duration::from_nanos(u64::try_from(time_ns).unwrap_or(u64::MAX));
        if self.rate == 0 { UNMEASURED_WAIT } else { time.clamp(LEAST_WAIT, MOST_WAIT) }
    }

    /// Waits for `time`, and for as long as nothing has left since the wait began.
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

/// No device's queue takes that much; as bytes, two thousand years of 1 Gbit/s.
const UNLIMITED: u64 = 1 << 62;
const NS_A_SECOND: u128 = 1_000_000_000;
/// Two of the largest frames, as the kernel counts them.
const FIRST_LIMIT_BYTES: u64 = 128 << 10;
/// A device that has sent all at once so far is not limited to less than it takes to fill it while it is asked.
const MOST_UNMEASURED_BYTES: u64 = 1 << 20;
/// Two full frames of Ethernet, as the kernel counts them, and two that are short.
const LEAST_LIMIT_BYTES: u64 = 8 << 10;
/// Half of what the packet socket takes.
const MOST_LIMIT_BYTES: u64 = 16 << 20;
/// Linux allows one millisecond. A thread wakes later than a softirq...
const LEAST_SPAN_NS: u64 = 2_000_000;
/// ...and on a machine that is busy, much later.
const MOST_SPAN_NS: u64 = 20_000_000;
const UNMEASURED_WAIT: Duration = Duration::from_micros(200);
const UNMOVED_WAIT: Duration = Duration::from_millis(1);
const LEAST_WAIT: Duration = Duration::from_micros(100);
const MOST_WAIT: Duration = Duration::from_millis(10);
/// While packets are kept, nothing says when the device will have room.
const SHORT_WAIT: Duration = Duration::from_micros(500);
/// Half of the shortest retransmission timeout: it is for the path to show that it is broken.
const MOST_STUCK: Duration = Duration::from_millis(100);
/// As much as one frame of the largest.
const STUCK_ROOM_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests;
