//! The round-trip estimate and the retransmission timeout (RFC 6298).
//!
//! Times are integers, in nanoseconds. `Duration` stores seconds and nanoseconds separately, and dividing a
//! `Duration` for each ACK costs more than all other steps.

use rxo_frame::Duration;

/// The round-trip estimate and the retransmission timeout.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrip {
    /// The round-trip estimate from all samples; `None` before the first sample.
    estimate: Option<Estimate>,
    min_rto_ns: u64,
    initial_rto_ns: u64,
    /// The number of times that the timeout was doubled since new data was last acknowledged.
    backoff: u32,
    /// `true` if the handshake timer fired (RFC 6298, section 5.7).
    is_slow_start: bool,
}

/// The round-trip estimate from all samples so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    srtt_ns: u64,
    rttvar_ns: u64,
    /// The smallest round-trip time since the connection opened, in nanoseconds.
    least_ns: u64,
}

impl Estimate {
    /// Adds the next sample `r`, in nanoseconds, to the estimate; at most [`MOST_SAMPLE_NS`].
    #[inline(always)]
    pub(crate) fn take(&mut self, r: u64) {
        let Self { srtt_ns, rttvar_ns, least_ns } = *self;
        *self = Self {
            rttvar_ns: (rttvar_ns * 3 + srtt_ns.abs_diff(r)) / 4,
            srtt_ns: (srtt_ns * 7 + r) / 8,
            least_ns: least_ns.min(r),
        };
    }
}

impl RoundTrip {
    pub(crate) fn new(min_rto: Duration, initial_rto: Duration) -> Self {
        let (min_rto_ns, initial_rto_ns) = (nanos(min_rto), nanos(initial_rto));
        Self { estimate: None, min_rto_ns, initial_rto_ns, backoff: 0, is_slow_start: false }
    }

    /// Returns SRTT, the smoothed round-trip time; `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed_ns().map(Duration::from_nanos)
    }

    /// Returns SRTT, the smoothed round-trip time, in nanoseconds; `None` before the first sample.
    #[inline]
    pub(crate) fn smoothed_ns(&self) -> Option<u64> {
        self.estimate.map(|estimate| estimate.srtt_ns)
    }

    /// Returns RTTVAR, the variation of the round-trip time; `None` before the first sample.
    pub(crate) fn variation(&self) -> Option<Duration> {
        self.estimate.map(|estimate| Duration::from_nanos(estimate.rttvar_ns))
    }

    /// Returns the smallest sample; zero before the first sample.
    pub(crate) fn least(&self) -> Duration {
        Duration::from_nanos(self.estimate.map_or(0, |estimate| estimate.least_ns))
    }

    /// Takes a sample from a segment that was sent once (Karn's algorithm; RFC 6298, section 3).
    pub(crate) fn sample(&mut self, sample: Duration) {
        self.sample_ns(nanos(sample));
    }

    /// Takes a sample in nanoseconds, and ends the backoff.
    #[inline]
    pub(crate) fn sample_ns(&mut self, sample: u64) {
        let r = sample.min(MOST_SAMPLE_NS);
        match &mut self.estimate {
            Some(estimate) => estimate.take(r),
            None => self.estimate = Some(Estimate { srtt_ns: r, rttvar_ns: r / 2, least_ns: r }),
        }
        self.backoff = 0;
    }

    /// Returns the estimate; `None` before the first sample.
    #[inline]
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        self.estimate
    }

    /// Sets an estimate that was copied from [`RoundTrip::estimate`] and updated, and ends the backoff.
    #[inline]
    pub(crate) fn set_estimate(&mut self, estimate: Estimate) {
        self.estimate = Some(estimate);
        self.backoff = 0;
    }

    /// Returns the retransmission timeout (RTO), including backoff.
    #[inline]
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_nanos(self.timeout_ns())
    }

    /// Returns the retransmission timeout (RTO) in nanoseconds, including backoff.
    #[inline]
    pub(crate) fn timeout_ns(&self) -> u64 {
        self.base_ns().saturating_mul(1 << self.backoff.min(MAX_BACKOFF)).min(MAX_RTO_NS)
    }

    /// Returns the retransmission timeout (RTO) in nanoseconds, without backoff.
    #[inline]
    fn base_ns(&self) -> u64 {
        match self.estimate {
            // RFC 6298, section 5.7, with an initial timeout of 1 s.
            None if self.is_slow_start => 3 * self.initial_rto_ns,
            None => self.initial_rto_ns,
            Some(Estimate { srtt_ns, rttvar_ns, .. }) => {
                (srtt_ns + (rttvar_ns * 4).max(GRANULARITY_NS)).max(self.min_rto_ns)
            }
        }
    }

    /// Doubles the timeout because the timer fired (RFC 6298, section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Returns the number of times that the timer fired since new data was last acknowledged.
    pub(crate) fn backed_off(&self) -> u32 {
        self.backoff
    }

    /// Ends the backoff: new data was acknowledged, or a timeout was spurious.
    pub(crate) fn forget_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Ends the handshake. `was_retransmitted` is `true` if the handshake's timer fired (RFC 6298, section
    /// 5.7).
    pub(crate) fn handshake_done(&mut self, was_retransmitted: bool) {
        self.is_slow_start = was_retransmitted;
        self.backoff = 0;
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

const SECOND_NS: u64 = 1_000_000_000;
/// The largest retransmission timeout in nanoseconds. RFC 6298, section 2.5 requires at least 60 seconds.
const MAX_RTO_NS: u64 = 120 * SECOND_NS;
/// G, the granularity of the timers in nanoseconds. The clock counts nanoseconds, but the timers are exact
/// only to milliseconds.
const GRANULARITY_NS: u64 = 1_000_000;
/// The longest round-trip sample in nanoseconds: one year. Eight times this value still fits 64 bits.
pub(crate) const MOST_SAMPLE_NS: u64 = 365 * 24 * 3600 * SECOND_NS;
const MAX_BACKOFF: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The estimate follows RFC 6298, sections 2.1, 2.2 and 2.3.
    #[test]
    fn the_estimate_follows_the_formulas() {
        let mut rtt = RoundTrip::new(ms(1), ms(1_000));
        assert_eq!(rtt.timeout(), ms(1000));
        rtt.sample(ms(100));
        assert_eq!(rtt.timeout(), ms(300));
        rtt.sample(ms(180));
        // RTTVAR = 3/4 * 50 + 1/4 * 80, SRTT = 7/8 * 100 + 1/8 * 180.
        assert_eq!(rtt.smoothed(), Some(ms(110)));
        assert_eq!(rtt.timeout(), ms(110) + Duration::from_micros(57_500 * 4));
        assert_eq!(rtt.least(), ms(100));
    }

    /// The timeout doubles between its bounds (RFC 6298, sections 2.5 and 5.5).
    #[test]
    fn the_timeout_doubles_within_its_limits() {
        let mut rtt = RoundTrip::new(ms(200), ms(1_000));
        rtt.sample(ms(1));
        assert_eq!(rtt.timeout(), ms(200));
        rtt.back_off();
        rtt.back_off();
        assert_eq!((rtt.timeout(), rtt.backed_off()), (ms(800), 2));
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(), Duration::from_nanos(MAX_RTO_NS));
        rtt.forget_backoff();
        assert_eq!(rtt.timeout(), ms(200));
    }

    /// After a retransmitted SYN the first timeout is three seconds (RFC 6298, section 5.7).
    #[test]
    fn a_slow_handshake_makes_the_first_timeout_three_seconds() {
        let mut rtt = RoundTrip::new(ms(200), ms(1_000));
        rtt.back_off();
        rtt.handshake_done(true);
        assert_eq!(rtt.timeout(), ms(3000));
    }
}
