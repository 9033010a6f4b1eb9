//! The retransmission timeout (RFC 6298).

use rxo_frame::Duration;

/// Round-trip estimate and timeout.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrip {
    estimate: Option<Estimate>,
    /// The least sample since the connection opened.
    least: Option<Duration>,
    min_rto: Duration,
    /// How often the timeout was doubled since it was last answered.
    backoff: u32,
    /// The handshake's timer fired (section 5.7).
    is_slow_start: bool,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    srtt: Duration,
    rttvar: Duration,
}

impl RoundTrip {
    pub(crate) fn new(min_rto: Duration) -> Self {
        Self { estimate: None, least: None, min_rto, backoff: 0, is_slow_start: false }
    }

    /// SRTT; `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.estimate.map(|estimate| estimate.srtt)
    }

    /// The least sample; zero before the first.
    pub(crate) fn least(&self) -> Duration {
        self.least.unwrap_or_default()
    }

    /// Takes a sample of a segment that was sent once (Karn's rule: section 3).
    pub(crate) fn sample(&mut self, r: Duration) {
        self.least = Some(self.least.map_or(r, |least| least.min(r)));
        let next = match self.estimate {
            None => Estimate { srtt: r, rttvar: r / 2 },
            Some(Estimate { srtt, rttvar }) => {
                Estimate { rttvar: (rttvar * 3 + srtt.abs_diff(r)) / 4, srtt: (srtt * 7 + r) / 8 }
            }
        };
        self.estimate = Some(next);
        self.backoff = 0;
    }

    /// RTO: how long to wait now, backed off.
    pub(crate) fn timeout(&self) -> Duration {
        self.base().saturating_mul(1 << self.backoff.min(MAX_BACKOFF)).min(MAX_RTO)
    }

    /// RTO before any backing off.
    fn base(&self) -> Duration {
        match self.estimate {
            None if self.is_slow_start => AFTER_SLOW_HANDSHAKE,
            None => INITIAL_RTO,
            Some(Estimate { srtt, rttvar }) => {
                (srtt + (rttvar * 4).max(GRANULARITY)).max(self.min_rto)
            }
        }
    }

    /// The timer fired (section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// How often it fired without an answer.
    pub(crate) fn backed_off(&self) -> u32 {
        self.backoff
    }

    /// Something new was acknowledged, or a timeout found to have been needless.
    pub(crate) fn forget_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The handshake is done; `was_retransmitted` says that its timer fired (section 5.7).
    pub(crate) fn handshake_done(&mut self, was_retransmitted: bool) {
        self.is_slow_start = was_retransmitted;
        self.backoff = 0;
    }
}

/// RFC 6298, section 2.1.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Section 5.7.
const AFTER_SLOW_HANDSHAKE: Duration = Duration::from_secs(3);
/// Section 2.5: at least 60 seconds.
const MAX_RTO: Duration = Duration::from_secs(120);
/// G: the caller's clock counts nanoseconds, its timers milliseconds.
const GRANULARITY: Duration = Duration::from_millis(1);
const MAX_BACKOFF: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// RFC 6298, sections 2.1, 2.2 and 2.3.
    #[test]
    fn the_estimate_follows_the_formulas() {
        let mut rtt = RoundTrip::new(ms(1));
        assert_eq!(rtt.timeout(), ms(1000));
        rtt.sample(ms(100));
        assert_eq!(rtt.timeout(), ms(300));
        rtt.sample(ms(180));
        // RTTVAR = 3/4 * 50 + 1/4 * 80, SRTT = 7/8 * 100 + 1/8 * 180.
        assert_eq!(rtt.smoothed(), Some(ms(110)));
        assert_eq!(rtt.timeout(), ms(110) + Duration::from_micros(57_500 * 4));
        assert_eq!(rtt.least(), ms(100));
    }

    /// RFC 6298, sections 2.5 and 5.5.
    #[test]
    fn the_timeout_doubles_within_its_limits() {
        let mut rtt = RoundTrip::new(ms(200));
        rtt.sample(ms(1));
        assert_eq!(rtt.timeout(), ms(200));
        rtt.back_off();
        rtt.back_off();
        assert_eq!((rtt.timeout(), rtt.backed_off()), (ms(800), 2));
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(), MAX_RTO);
        rtt.forget_backoff();
        assert_eq!(rtt.timeout(), ms(200));
    }

    /// RFC 6298, section 5.7.
    #[test]
    fn a_slow_handshake_makes_the_first_timeout_three_seconds() {
        let mut rtt = RoundTrip::new(ms(200));
        rtt.back_off();
        rtt.handshake_done(true);
        assert_eq!(rtt.timeout(), ms(3000));
    }
}
