//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation): the rate at which data arrived between
//! the sending of a segment and its ACK.
//!
//! The state at sending is the same for all segments that are sent at one instant, so it is stored per
//! instant, not per segment.

use alloc::collections::VecDeque;

use rxo_frame::Instant;

/// The bytes delivered so far, and the state at the instants at which segments were sent.
#[derive(Debug)]
pub(super) struct Samples {
    /// C.delivered: the number of bytes that have arrived so far.
    pub(super) delivered: u64,
    /// C.delivered_time: the time of the last delivery.
    delivered_at: Instant,
    /// C.first_sent_time of the draft: the send time of the segment that was delivered last; after an idle time,
    /// the time of the first send.
    first_sent_at: Instant,
    /// C.app_limited: samples count as limited by the application until this number of bytes is delivered; 0
    /// if the application is not the limit.
    limited_until: u64,
    sends: VecDeque<Send>,
}

/// The state at an instant at which a segment was sent.
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
    /// The delivery rate in bytes per second; 0 if the interval was too short for a measurement.
    pub(super) rate: u64,
    /// P.delivered: the number of bytes that were delivered before the newest delivered segment was sent.
    pub(super) delivered_before: u64,
    /// `true` if the application, not the network, limited the rate.
    pub(super) is_limited: bool,
}

impl Samples {
    pub(super) fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            // A small first message does not show the rate of the path.
            limited_until: 1,
            sends: VecDeque::new(),
        }
    }

    /// Frees the memory of the sending records. Call it only while nothing is in flight.
    pub(super) fn free(&mut self) {
        self.sends = VecDeque::new();
    }

    /// Records that a segment is sent at `now` while `in_flight` bytes are in flight.
    pub(super) fn sent(&mut self, now: Instant, in_flight: u32) {
        if in_flight == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        // The list of instants may be full. Then this segment counts from the last instant, and its sample
        // covers a longer time.
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

    /// Records that `bytes` have arrived by `now`, the newest of them sent at `sent_at`. Returns a rate
    /// sample, or `None` if the state at `sent_at` is not known any more.
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
        // An interval shorter than a round trip comes from ACKs that were held and released
        // together.
        let is_known = ns > 0 && ns >= least_rtt_ns;
        let rate = if is_known { bytes * NANOS_PER_SECOND / u128::from(ns) } else { 0 };
        Some(Sample {
            rate: u64::try_from(rate).unwrap_or(u64::MAX),
            delivered_before: send.delivered,
            is_limited: send.is_limited,
        })
    }

    /// Records that the application has nothing to send although more than `in_flight` bytes may be in
    /// flight.
    pub(super) fn limit(&mut self, in_flight: u32) {
        self.limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Returns `true` if the application limited the sending rate and not all data that was in flight at that
    /// time has arrived.
    pub(super) fn is_limited(&self) -> bool {
        self.limited_until > 0
    }
}

/// The largest number of sending instants to remember. Pacing sends once per millisecond, so this covers a
/// round trip of 256 ms.
const MOST_SENDS: usize = 256;
pub(super) const NANOS_PER_SECOND: u128 = 1_000_000_000;
