//! Tokens: when a large ACK enlarges the congestion window, the additional bytes become usable a little later.
//!
//! An ACK of many segments permits an equally large group to be sent at once. The growth by slow
//! start would make each group twice as large as the last. Therefore the growth is held, and released in
//! tokens of the size of the peer's aggregate, at two windows per round trip, twice the rate at which the
//! window was sent. At the start and after idle time no ACKs pace the data: everything beyond the
//! permitted burst is held and released over a given time.

use rxo_frame::{Duration, Instant};

use super::{Acked, Window};

/// The part of the congestion window that is held back for now. By default nothing is held.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens {
    held_bytes: u32,
    /// The number of bytes that one token releases.
    token_bytes: u32,
    /// The time between tokens, in nanoseconds.
    interval_ns: u64,
    /// The time at which held bytes are next released. Meaningless if nothing is held.
    due: Instant,
    /// `true` if the bytes are held because the connection was idle before.
    follow_idle: bool,
}

impl Tokens {
    /// Returns the number of bytes of the congestion window that are held back.
    pub(super) fn held_bytes(&self) -> u32 {
        self.held_bytes
    }

    /// Returns the time at which held bytes are next released, or `None` if nothing is held.
    pub(super) fn due(&self) -> Option<Instant> {
        (self.held_bytes > 0).then_some(self.due)
    }

    /// Holds all bytes of an idle `window` except `at_once`, and releases them during the `round_trip` that
    /// begins at `now`.
    pub(super) fn after_idle(
        now: Instant,
        window: &Window,
        at_once: u32,
        round_trip: Duration,
    ) -> Self {
        Self { follow_idle: true, ..Self::spread(now, window, at_once, round_trip) }
    }

    /// Holds all bytes of `window` except `at_once`, and releases them during the `time` that begins at
    /// `now`.
    pub(super) fn spread(now: Instant, window: &Window, at_once: u32, time: Duration) -> Self {
        let held_bytes = window.cwnd.saturating_sub(at_once);
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let share =
            |bytes: u32| u128::from(time_ns) * u128::from(bytes) / u128::from(window.cwnd.max(1));
        let interval_ns = share(at_once).max(LEAST_INTERVAL_NS.into());
        let token = u128::from(window.cwnd) * interval_ns / u128::from(time_ns.max(1));
        let interval_ns = u64::try_from(interval_ns).unwrap_or(u64::MAX);
        Self {
            held_bytes,
            token_bytes: u32::try_from(token).unwrap_or(u32::MAX),
            interval_ns,
            due: now + Duration::from_nanos(interval_ns),
            follow_idle: false,
        }
    }

    /// Returns `true` if bytes are held because the connection was idle before.
    pub(super) fn follow_idle(&self) -> bool {
        self.follow_idle && self.held_bytes > 0
    }

    /// Permits two segments of `growth` at once and holds the rest back. `growth` is the number of bytes by which
    /// `acked` has enlarged `window`.
    pub(super) fn hold(&mut self, growth: u32, window: &Window, acked: &Acked) {
        let more = growth.saturating_sub(AT_ONCE_SEGMENTS * window.mss);
        let rtt_ns = u64::try_from(acked.rtt.as_nanos()).unwrap_or(u64::MAX);
        let share =
            u128::from(rtt_ns) * u128::from(acked.bytes) / u128::from(2 * window.cwnd.max(1));
        let interval_ns = u64::try_from(share).unwrap_or(u64::MAX);
        if more == 0 || interval_ns < LEAST_INTERVAL_NS {
            return;
        }
        if self.held_bytes == 0 {
            self.due = acked.now + Duration::from_nanos(interval_ns);
        }
        self.held_bytes = self.held_bytes.saturating_add(more);
        (self.token_bytes, self.interval_ns) = (acked.bytes, interval_ns);
        self.follow_idle = false;
    }

    /// Releases the held bytes of all tokens that are due at `now`.
    pub(super) fn release(&mut self, now: Instant) {
        if self.held_bytes == 0 || now < self.due {
            return;
        }
        let tokens = 1 + now.nanos_since(self.due) / self.interval_ns.max(1);
        let bytes = tokens.saturating_mul(self.token_bytes.max(1).into());
        self.held_bytes = self.held_bytes.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.due = now + Duration::from_nanos(self.interval_ns);
    }
}

/// The number of segments that one ACK may add to the window at once (RFC 3465, section 2.3).
const AT_ONCE_SEGMENTS: u32 = 2;
/// The shortest interval between tokens, in nanoseconds: timers are not more exact, so growth is not delayed
/// by less than this.
const LEAST_INTERVAL_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use rxo_wire::SeqNumber;

    use super::*;
    use crate::InitialWindow;

    const MSS: u32 = 1_000;

    fn held(rtt: Duration) -> Tokens {
        let mut tokens = Tokens::default();
        let window = Window {
            cwnd: 20 * MSS,
            ssthresh: u32::MAX,
            mss: MSS,
            initial: InitialWindow::default(),
        };
        let acked = Acked {
            now: Instant::ZERO,
            bytes: 10 * MSS,
            rtt,
            ack: SeqNumber(0),
            nxt: SeqNumber(0),
            sample_ns: None,
            after_timeout: false,
        };
        tokens.hold(10 * MSS, &window, &acked);
        tokens
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn growth_is_released_a_quarter_of_a_round_trip_later() {
        let mut tokens = held(Duration::from_millis(40));
        assert_eq!((tokens.held_bytes(), tokens.due()), (8 * MSS, Some(at(10))));
        tokens.release(at(9));
        assert_eq!(tokens.held_bytes(), 8 * MSS);
        tokens.release(at(10));
        assert_eq!((tokens.held_bytes(), tokens.due()), (0, None));
    }

    #[test]
    fn one_token_is_one_aggregate() {
        let mut tokens = held(Duration::from_millis(40));
        tokens.held_bytes = 35 * MSS;
        tokens.release(at(10));
        assert_eq!((tokens.held_bytes(), tokens.due()), (25 * MSS, Some(at(20))));
        // A late call releases all tokens that have become due.
        tokens.release(at(31));
        assert_eq!(tokens.held_bytes(), 5 * MSS);
        tokens.release(at(1_000));
        assert_eq!(tokens.due(), None);
    }

    #[test]
    fn on_a_short_path_nothing_is_held() {
        assert_eq!(held(Duration::from_micros(100)).due(), None);
    }
}
