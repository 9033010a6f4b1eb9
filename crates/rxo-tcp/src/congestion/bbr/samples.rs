//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation): how fast data arrived between the time a
//! segment was sent and the time it was acknowledged.
//!
//! What is known when a segment leaves is the same for all that leave at one instant, so it is kept by instants,
//! not by segments.

use alloc::collections::VecDeque;

use rxo_frame::Instant;

/// What was delivered, and what was known when each segment left.
#[derive(Debug)]
pub(super) struct Samples {
    /// C.delivered: all bytes that have arrived.
    pub(super) delivered: u64,
    /// C.delivered_time.
    delivered_at: Instant,
    /// C.first_sent_time: when the segment was sent that was last found delivered.
    first_sent_at: Instant,
    /// C.app_limited: until so much is delivered, samples say how fast the application was; 0 if it was not slow.
    limited_until: u64,
    sends: VecDeque<Send>,
}

/// What was known at an instant at which something left.
#[derive(Clone, Copy, Debug)]
struct Send {
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    is_limited: bool,
}

/// A delivery rate sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Bytes a second; 0 if the time was too short to say.
    pub(super) rate: u64,
    /// P.delivered: what had been delivered when the newest delivered segment left.
    pub(super) delivered_before: u64,
    /// Whether the application, not the network, was slow.
    pub(super) is_limited: bool,
}

impl Samples {
    pub(super) fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            // A small first message says nothing of the path.
            limited_until: 1,
            sends: VecDeque::new(),
        }
    }

    /// Frees the memory. Nothing is in flight.
    pub(super) fn free(&mut self) {
        self.sends = VecDeque::new();
    }

    /// Something leaves at `now`, while `in_flight` bytes are in flight.
    pub(super) fn sent(&mut self, now: Instant, in_flight: u32) {
        if in_flight == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        // Too many instants: what leaves now counts from the last one, so its sample covers a longer time.
        if self.sends.len() < MOST_SENDS && self.sends.back().is_none_or(|last| last.at < now) {
            self.sends.push_back(Send {
                at: now,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                first_sent_at: self.first_sent_at,
                is_limited: self.limited_until > 0,
            });
        }
    }

    /// `bytes` have arrived by `now`; the newest of them left at `sent_at`. `None` if that is not known any more.
    pub(super) fn arrived(
        &mut self,
        now: Instant,
        bytes: u32,
        sent_at: Option<Instant>,
        least_rtt_ns: u64,
    ) -> Option<Sample> {
        self.delivered += u64::from(bytes);
        self.delivered_at = now;
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let sent_at = sent_at?;
        while self.sends.get(1).is_some_and(|next| next.at <= sent_at) {
            self.sends.pop_front();
        }
        let send = *self.sends.front().filter(|send| send.at <= sent_at)?;
        self.first_sent_at = sent_at;
        let sending_ns = sent_at.nanos_since(send.first_sent_at);
        let arriving_ns = now.nanos_since(send.delivered_at);
        let ns = sending_ns.max(arriving_ns);
        let bytes = u128::from(self.delivered - send.delivered);
        // In less than a round trip: acknowledgements that were held together.
        let is_known = ns > 0 && ns >= least_rtt_ns;
        let rate = if is_known { bytes * NANOS_PER_SECOND / u128::from(ns) } else { 0 };
        Some(Sample {
            rate: u64::try_from(rate).unwrap_or(u64::MAX),
            delivered_before: send.delivered,
            is_limited: send.is_limited,
        })
    }

    /// The sender could send more, with `in_flight` bytes in flight, but has nothing to send.
    pub(super) fn limit(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Whether the application was slow, and what it sent has not all arrived.
    pub(super) fn is_limited(&self) -> bool {
        self.limited_until > 0
    }
}

/// Instants at which something left: pacing sends once in a millisecond, so a round trip of 256 ms.
const MOST_SENDS: usize = 256;
pub(super) const NANOS_PER_SECOND: u128 = 1_000_000_000;
