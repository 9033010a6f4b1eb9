//! The link to the receivers: it transmits segments in order at its rate, and gives the arrival time of each.

use std::collections::VecDeque;
use std::time::Duration;

use rxo::Instant;
use rxo::wire::SeqNumber;

use super::frames::Text;

/// A segment to the group in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flying {
    /// Arrival time of the segment.
    pub(crate) at: Instant,
    /// Sequence number after the segment.
    pub(crate) end: SeqNumber,
    pub(crate) is_last: bool,
    pub(crate) clock: u32,
}

/// State of the link.
#[derive(Debug)]
pub(crate) struct Wire {
    bits_per_s: f64,
    /// Time at which the link has sent everything so far.
    free_at: Instant,
    flying: VecDeque<Flying>,
    segment_bytes: usize,
}

impl Wire {
    /// Makes an idle link of `bits_per_s`, for segments of `segment_bytes` payload bytes.
    pub(crate) fn new(bits_per_s: f64, segment_bytes: usize) -> Self {
        Self { bits_per_s, free_at: Instant::ZERO, flying: VecDeque::new(), segment_bytes }
    }

    /// Returns `true` if the card may hand over the next frame: once the link has sent nearly everything
    /// before it.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.free_at <= now + AHEAD
    }

    /// Sends `text`, which the card has held since `since`.
    pub(crate) fn send(&mut self, text: Text, since: Instant) {
        let Text { seq, bytes, is_last, clock } = text;
        let mut sent = 0;
        loop {
            let segment = (bytes - sent).min(self.segment_bytes);
            sent += segment;
            let bits = ((segment + OVERHEAD_BYTES) * 8) as f64;
            let time = Duration::from_nanos((bits * 1e9 / self.bits_per_s) as u64);
            self.free_at = self.free_at.max(since) + time;
            let is_last = is_last && sent == bytes;
            let end = seq + sent as u32 + u32::from(is_last);
            self.flying.push_back(Flying { at: self.free_at + THERE, end, is_last, clock });
            if sent == bytes {
                return;
            }
        }
    }

    /// Removes the next segment that has arrived by `now`; `None` if there is none.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<Flying> {
        self.flying.pop_front_if(|segment| segment.at <= now)
    }

    /// Returns the arrival time of the next segment; `None` if none is in flight.
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        self.flying.front().map(|segment| segment.at)
    }

    /// Returns the time from which [`Wire::has_room`] is true.
    pub(crate) fn room_at(&self) -> Instant {
        Instant::from_nanos(self.free_at.as_nanos().saturating_sub(AHEAD.as_nanos() as u64))
    }
}

/// Bytes of the Ethernet, IPv4 and TCP headers.
pub(crate) const HEADER_BYTES: usize = 14 + 20 + 32;
/// Bytes that a segment occupies on the link besides payload: headers, frame check sequence, preamble and
/// gap.
pub(crate) const OVERHEAD_BYTES: usize = HEADER_BYTES + 4 + 8 + 12;
/// Time from the end of a segment on the link to the ACK: a switch, a card and a host.
const THERE: Duration = Duration::from_micros(50);
/// Time by which a card prepares the next frame before the link is free.
const AHEAD: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_arrive_at_the_rate_of_the_link() {
        let mut wire = Wire::new(1e9, 1_448);
        let text = Text { seq: SeqNumber(10), bytes: 2_900, is_last: true, clock: 7 };
        wire.send(text, Instant::from_micros(100));
        let us = |micros: f64| Instant::from_nanos((micros * 1e3) as u64);
        assert!(wire.arrived(us(162.3)).is_none());
        let first = wire.arrived(us(162.304)).unwrap();
        assert_eq!((first.end, first.is_last), (SeqNumber(1_458), false));
        assert_eq!(wire.arrived(us(174.608)).unwrap().end, SeqNumber(2_906));
        let last = wire.arrived(us(180.0)).unwrap();
        assert_eq!((last.end, last.is_last, last.clock), (SeqNumber(2_911), true, 7));
        assert!(wire.poll_at().is_none() && wire.has_room(us(100.0)));
        assert!(!wire.has_room(us(25.0)) && wire.has_room(wire.room_at()));
    }
}
