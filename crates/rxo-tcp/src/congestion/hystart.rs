//! HyStart++ (RFC 9406): ends slow start when the delay rises, before a queue overflows.
//!
//! A rise may be due to chance. Therefore a few round trips of conservative slow start follow; if the delay
//! falls again, slow start resumes.

use super::Window;

/// The state of HyStart++ in the first slow start.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// lastRoundMinRTT: the minimum round-trip time in the last round trip, in nanoseconds; `u64::MAX` before
    /// the second round trip.
    last_least_ns: u64,
    /// currentRoundMinRTT: the minimum round-trip time in this round trip so far, in nanoseconds; `u64::MAX`
    /// without a sample.
    least_ns: u64,
    /// rttSampleCount: the number of samples in this round trip.
    samples: u32,
    conservative: Option<Conservative>,
}

/// The state of conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// cssBaselineMinRtt: the minimum round-trip time at the start of conservative slow start, in
    /// nanoseconds.
    baseline_ns: u64,
    /// The number of round trips of conservative slow start that have begun.
    rounds: u32,
}

impl Default for HyStart {
    fn default() -> Self {
        Self { last_least_ns: u64::MAX, least_ns: u64::MAX, samples: 0, conservative: None }
    }
}

impl HyStart {
    /// Begins a round trip. Sets the threshold of `window` to its size when slow start is over.
    pub(super) fn begin_round(&mut self, window: &mut Window) {
        (self.last_least_ns, self.least_ns, self.samples) = (self.least_ns, u64::MAX, 0);
        if let Some(conservative) = &mut self.conservative {
            conservative.rounds += 1;
            if conservative.rounds > CSS_ROUNDS {
                window.ssthresh = window.cwnd;
            }
        }
    }

    /// Grows `window` for an ACK of `bytes` bytes. `sample_ns` is the round-trip time in
    /// nanoseconds that the ACK shows, if any.
    pub(super) fn grow(&mut self, window: &mut Window, bytes: u32, sample_ns: Option<u64>) {
        let divisor = if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 };
        window.grow(bytes / divisor);
        if let Some(sample_ns) = sample_ns {
            self.least_ns = self.least_ns.min(sample_ns);
            self.samples += 1;
            self.compare();
        }
    }

    /// Enters conservative slow start when the delay has risen, and leaves it when the delay has fallen
    /// again.
    fn compare(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.conservative {
            Some(now) if self.least_ns < now.baseline_ns => self.conservative = None,
            None if self.has_risen() => {
                // The rest of this round trip counts as the first conservative one.
                self.conservative = Some(Conservative { baseline_ns: self.least_ns, rounds: 1 });
            }
            _ => {}
        }
    }

    fn has_risen(&self) -> bool {
        let threshold =
            (self.last_least_ns / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH_NS, MAX_RTT_THRESH_NS);
        self.last_least_ns.checked_add(threshold).is_some_and(|most| self.least_ns >= most)
    }
}

const MIN_RTT_THRESH_NS: u64 = 4_000_000;
const MAX_RTT_THRESH_NS: u64 = 16_000_000;
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::super::MAX_WINDOW_BYTES;
    use super::*;
    use crate::InitialWindow;

    const MSS: u32 = 1_000;

    struct Path {
        hystart: HyStart,
        window: Window,
    }

    impl Path {
        fn new() -> Self {
            let initial = InitialWindow::default();
            let window = Window { cwnd: 10 * MSS, ssthresh: MAX_WINDOW_BYTES, mss: MSS, initial };
            Self { hystart: HyStart::default(), window }
        }

        /// Simulates a round trip of `ms` milliseconds and returns the growth of the window in segments.
        fn round(&mut self, ms: u64) -> u32 {
            let before = self.window.cwnd;
            self.hystart.begin_round(&mut self.window);
            if self.is_complete() {
                return 0;
            }
            for _ in 0..before / MSS {
                self.hystart.grow(&mut self.window, MSS, Some(ms * 1_000_000));
            }
            (self.window.cwnd - before) / MSS
        }

        fn is_complete(&self) -> bool {
            self.window.ssthresh < MAX_WINDOW_BYTES
        }
    }

    /// A delay has risen if it exceeds the last by an eighth, within 4 and 16 ms (RFC 9406, section 4.2 (a)).
    #[test]
    fn a_risen_delay_makes_slow_start_conservative() {
        for (before, risen) in [(8, 12), (40, 45), (400, 416)] {
            let mut path = Path::new();
            assert_eq!((path.round(before), path.round(before)), (10, 20));
            assert_eq!(path.round(risen - 1), 40, "{risen} ms");
            let mut path = Path::new();
            path.round(before);
            path.round(before);
            // The eighth sample shows the rise; the other 32 segments count for a quarter.
            assert_eq!(path.round(risen), 8 + 32 / 4, "{risen} ms");
            assert!(!path.is_complete());
        }
    }

    /// Slow start ends after five conservative round trips, including the one in which it became
    /// conservative; the window becomes the threshold (RFC 9406, section 4.2 (b)).
    #[test]
    fn it_ends_after_five_round_trips() {
        let mut path = Path::new();
        path.round(40);
        path.round(50);
        for round in 2..=5 {
            let segments = path.window.cwnd / MSS;
            assert!((segments / 4).abs_diff(path.round(50)) <= 1, "round {round}");
            assert!(!path.is_complete());
        }
        let grown = path.window.cwnd;
        assert_eq!(path.round(50), 0);
        assert_eq!(path.window.ssthresh, grown);
    }

    /// Slow start resumes if the delay falls below the baseline (RFC 9406, section 4.2 (c)).
    #[test]
    fn slow_start_resumes_when_the_delay_falls() {
        let mut path = Path::new();
        path.round(40);
        path.round(50);
        path.round(40);
        let segments = path.window.cwnd / MSS;
        assert_eq!(path.round(40), segments);
        assert!(!path.is_complete());
    }

    /// Fewer than eight samples have no effect (RFC 9406, section 4.2 (d)).
    #[test]
    fn a_few_samples_say_nothing() {
        let mut path = Path::new();
        path.round(40);
        path.hystart.begin_round(&mut path.window);
        for _ in 0..7 {
            path.hystart.grow(&mut path.window, MSS, Some(100_000_000));
        }
        path.hystart.grow(&mut path.window, 20 * MSS, None);
        assert!(path.hystart.conservative.is_none());
    }
}
