//! The retransmission timeout of RFC 6298, from round trips measured by timestamps.

use std::time::Duration;

/// The retransmission timeout and its estimator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout {
    smoothed: Option<(Duration, Duration)>,
    timeout: Duration,
}

impl Timeout {
    pub(super) const fn new() -> Self {
        Self { smoothed: None, timeout: INITIAL }
    }

    pub(super) const fn get(self) -> Duration {
        self.timeout
    }

    /// Updates the estimator with a round trip (section 2).
    pub(super) fn on_round_trip(&mut self, sample: Duration) {
        let (mean, deviation) = match self.smoothed {
            None => (sample, sample / 2),
            Some((mean, deviation)) => {
                let error = mean.abs_diff(sample);
                ((mean * 7 + sample) / 8, (deviation * 3 + error) / 4)
            }
        };
        self.smoothed = Some((mean, deviation));
        self.timeout = (mean + deviation * 4).clamp(LEAST, MOST);
    }

    /// Doubles the timeout after it expired (section 5.5).
    pub(super) fn back_off(&mut self) {
        self.timeout = (self.timeout * 2).min(MOST);
    }
}

const INITIAL: Duration = Duration::from_secs(1);
/// Smallest timeout: Linux's. With the RFC's second, a single lost retransmission would end the experiment.
const LEAST: Duration = Duration::from_millis(200);
const MOST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn steady_round_trips_bring_the_least_and_a_timeout_doubles() {
        let mut timeout = Timeout::new();
        assert_eq!(timeout.get(), INITIAL);
        timeout.on_round_trip(millis(100));
        assert_eq!(timeout.get(), millis(300));
        (0..40).for_each(|_| timeout.on_round_trip(millis(100)));
        assert_eq!(timeout.get(), LEAST);
        timeout.back_off();
        assert_eq!(timeout.get(), 2 * LEAST);
    }
}
