//! Timestamps (RFC 7323): our clock, the peer's last value, and protection against wrapped sequence numbers.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;
use rxo_wire::tcp::Timestamp;

/// The timestamp state of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timestamps {
    /// `true` if both sides use timestamps.
    pub(crate) is_agreed: bool,
    /// The offset of our timestamp clock, in milliseconds.
    offset: u32,
    /// TS.Recent: the timestamp of the peer that is echoed.
    recent: u32,
    recent_at: Instant,
    /// The TSecr of the segment that set TS.Recent.
    recent_echo: u32,
    /// The arrival time of the peer's SYN, when timestamps came into use. No valid echo can be much older.
    agreed_at: Instant,
    /// Last.ACK.sent: the last ACK number sent. A pending ACK counts as sent.
    pub(crate) last_ack: SeqNumber,
}

impl Timestamps {
    pub(crate) fn new(offset: u32) -> Self {
        Self { offset, ..Self::default() }
    }

    /// Decides whether timestamps are used, from `offered`, the timestamp of the peer's SYN, and stores its
    /// value.
    pub(crate) fn agree(&mut self, offered: Option<Timestamp>, is_wanted: bool, now: Instant) {
        self.is_agreed = is_wanted && offered.is_some();
        let Timestamp { value, echo } = offered.unwrap_or_default();
        (self.recent, self.recent_at, self.recent_echo) = (value, now, echo);
        self.agreed_at = now;
    }

    /// Returns the timestamp to send now.
    pub(crate) fn current(&self, now: Instant) -> Timestamp {
        Timestamp { value: self.clock(now), echo: self.recent }
    }

    /// Returns `true` if a segment with this TSval is old (RFC 7323, section 5.3, R1). After 24 idle days
    /// this cannot be decided, and the result is `false` (section 5.5).
    pub(crate) fn is_old(&self, value: u32, now: Instant) -> bool {
        let is_before = value.wrapping_sub(self.recent) as i32;
        is_before < 0 && now.since(self.recent_at) < OUTDATED
    }

    /// Returns TS.Recent: the timestamp of the peer that is echoed.
    pub(crate) const fn recent(&self) -> u32 {
        self.recent
    }

    /// Returns the time at which the peer's last timestamp arrived.
    pub(crate) fn recent_at(&self) -> Instant {
        self.recent_at
    }

    /// Returns `true` if the peer's timestamp clock can have reached `value` now. This requires that timestamps
    /// are in use and that `value` is not old. `value` may exceed the last value by at most two ticks for each
    /// millisecond since then, plus ten thousand ticks. A tick is at least a millisecond (RFC 7323, section
    /// 5.4).
    pub(crate) fn is_timely(&self, value: u32, now: Instant) -> bool {
        let elapsed_ms = u64::try_from(now.since(self.recent_at).as_millis()).unwrap_or(u64::MAX);
        let ahead = u64::from(value.wrapping_sub(self.recent));
        let most = elapsed_ms.saturating_mul(2).saturating_add(TICKS_AHEAD);
        self.is_agreed && !self.is_old(value, now) && ahead <= most.min(i32::MAX as u64)
    }

    /// Returns `true` if the timestamp `option` of a segment is acceptable: the option is present if timestamps
    /// are in use, and its TSval is not old.
    #[inline]
    pub(crate) fn expects(&self, option: Option<Timestamp>) -> bool {
        !self.is_agreed
            || option.is_some_and(|timestamp| timestamp.value.wrapping_sub(self.recent) as i32 >= 0)
    }

    /// Records the TSval of a segment that begins at `seq`, if it must be recorded and is not old (RFC 7323,
    /// section 4.3, rule 2).
    pub(crate) fn remember(&mut self, timestamp: Timestamp, seq: SeqNumber, now: Instant) {
        if self.covers(seq) && !self.is_old(timestamp.value, now) {
            self.record(timestamp, now);
        }
    }

    /// Returns `true` if the timestamp of a segment that begins at `seq` must be recorded.
    #[inline]
    pub(crate) fn covers(&self, seq: SeqNumber) -> bool {
        self.last_ack.is_at_or_after(seq)
    }

    /// Records the timestamp of a segment that is not old and for which [`Timestamps::covers`] is true.
    #[inline]
    pub(crate) fn record(&mut self, Timestamp { value, echo }: Timestamp, now: Instant) {
        (self.recent, self.recent_at, self.recent_echo) = (value, now, echo);
    }

    /// Returns `true` if recording the timestamp `option` at `now` would change nothing, whatever the sequence
    /// number of its segment.
    #[inline]
    pub(crate) fn is_unchanged_by(&self, option: Option<Timestamp>, now: Instant) -> bool {
        let is_recorded = |stamp: Timestamp| {
            (self.recent, self.recent_at, self.recent_echo) == (stamp.value, now, stamp.echo)
        };
        !self.is_agreed || option.is_none_or(is_recorded)
    }

    /// Returns the round-trip time to the millisecond, from the last recorded segment: the time from sending
    /// the timestamp that the segment echoes, possibly on an ACK, to the segment's arrival. The
    /// result is longer than the round trip if the peer had nothing to send in between. `None` if the time is
    /// not known.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        let sent_at = self.echoed(self.recent_echo, self.recent_at)?;
        Some(self.recent_at.since(sent_at))
    }

    /// Returns the send time of the segment whose timestamp the peer echoes, to the millisecond. `None` if this
    /// time is before the connection opened, because an invalid echo must not affect our timers.
    pub(crate) fn echoed(&self, echo: u32, now: Instant) -> Option<Instant> {
        let age_ms = u64::from(self.clock(now).wrapping_sub(echo));
        let now_ms = now.as_nanos() / NANOS_PER_MILLI;
        let sent_ms = now_ms.checked_sub(age_ms)?;
        let is_possible = self.is_agreed && sent_ms >= self.agreed_at.as_nanos() / NANOS_PER_MILLI;
        is_possible.then_some(Instant::from_nanos(sent_ms * NANOS_PER_MILLI))
    }

    /// Returns TSval, the timestamp to send. A tick is a millisecond (RFC 7323, section 5.4 allows 1 ms to 1
    /// s).
    pub(crate) fn clock(&self, now: Instant) -> u32 {
        self.offset.wrapping_add((now.as_nanos() / NANOS_PER_MILLI) as u32)
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;
/// Number of additional ticks by which a peer's timestamp may be ahead: the peer's clock may have been set, or
/// the machine suspended.
const TICKS_AHEAD: u64 = 10_000;
const OUTDATED: Duration = Duration::from_secs(24 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(value: u32) -> Timestamps {
        let mut timestamps = Timestamps::new(u32::MAX - 5);
        timestamps.agree(Some(Timestamp { value, echo: 0 }), true, Instant::ZERO);
        timestamps
    }

    /// Old values are detected across the wrap (RFC 7323, sections 5.3 and 5.5).
    #[test]
    fn what_is_old_is_told_across_the_wrap() {
        let timestamps = agreed(3);
        let now = Instant::from_micros(1);
        assert!(timestamps.is_old(2, now));
        assert!(timestamps.is_old(u32::MAX, now));
        assert!(!timestamps.is_old(3, now));
        assert!(!timestamps.is_old(2, Instant::ZERO + OUTDATED));
    }

    #[test]
    fn a_timely_value_is_one_that_the_clock_can_have_reached() {
        let mut timestamps = agreed(3);
        timestamps.remember(Timestamp { value: 5_000, echo: 0 }, SeqNumber(0), Instant::ZERO);
        let second = Instant::from_micros(1_000_000);
        let rows = [(4_999, false), (5_000, true), (6_000, true), (17_000, true), (17_001, false)];
        for (value, is_timely) in rows {
            assert_eq!(timestamps.is_timely(value, second), is_timely, "{value}");
        }
        assert!(!Timestamps::new(7).is_timely(0, second), "they were not agreed on");
    }

    /// The echo is that of the earliest segment that is not acknowledged (RFC 7323, section 4.3).
    #[test]
    fn the_first_of_two_is_echoed() {
        let mut timestamps = agreed(3);
        timestamps.last_ack = SeqNumber(100);
        timestamps.remember(Timestamp { value: 10, echo: 0 }, SeqNumber(100), Instant::ZERO);
        timestamps.remember(Timestamp { value: 20, echo: 0 }, SeqNumber(200), Instant::ZERO);
        assert_eq!(timestamps.current(Instant::ZERO).echo, 10);
    }

    #[test]
    fn an_echo_names_the_millisecond() {
        let timestamps = agreed(3);
        let (sent, now) = (Instant::from_micros(7_400), Instant::from_micros(30_900));
        let echo = timestamps.current(sent).value;
        assert_eq!(timestamps.echoed(echo, now), Some(Instant::from_micros(7_000)));
        assert_eq!(timestamps.echoed(echo.wrapping_sub(1000), now), None);
        let year = Instant::ZERO + Duration::from_secs(365 * 24 * 3600);
        let mut late = Timestamps::new(5);
        late.agree(Some(Timestamp::default()), true, year);
        assert_eq!(late.echoed(0, year), None);
        assert!(late.echoed(late.current(year).value, year).is_some());
    }
}
