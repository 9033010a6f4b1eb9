//! The extent of an experiment's measurements: defaults, and accepted values.

use std::time::Duration;

use anyhow::Result;
use rxo_demo::limits::{duration, within};

use crate::flags::RunFlags;

/// Default extent of the measurements, and the accepted ranges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Default number of rounds, of the full experiment and of the quick one.
    pub(crate) rounds: [usize; 2],
    pub(crate) most_rounds: usize,
    /// Default time of one measurement, of the full experiment and of the quick one.
    pub(crate) durations: [Duration; 2],
    pub(crate) shortest: Duration,
}

/// The chosen extent of the measurements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Number of rounds; each case is measured once per round.
    pub(crate) rounds: usize,
    /// Time of one measurement.
    pub(crate) duration: Duration,
}

impl Limits {
    /// Returns the typed values, or the defaults.
    ///
    /// # Errors
    /// If a value is out of its range; the message names the range.
    pub(crate) fn effort(&self, flags: &RunFlags) -> Result<Effort> {
        let kind = usize::from(flags.is_quick());
        let rounds = flags.rounds.unwrap_or(self.rounds[kind]);
        within("--rounds", rounds, 1..=self.most_rounds)?;
        let text = flags.seconds.as_deref();
        let duration =
            text.map_or(Ok(self.durations[kind]), |text| duration(text, self.shortest..=LONGEST))?;
        Ok(Effort { rounds, duration })
    }
}

/// Longest accepted time of one measurement. Longer ones add no precision.
const LONGEST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    const LIMITS: Limits = Limits {
        rounds: [5, 1],
        most_rounds: 100,
        durations: [Duration::from_secs(2), Duration::from_millis(300)],
        shortest: Duration::from_millis(100),
    };

    #[test]
    fn quick_is_less_unless_more_was_typed() {
        let effort = |line| LIMITS.effort(&typed::<RunFlags>(line).unwrap());
        let quick = effort("--quick").unwrap();
        assert_eq!((quick.rounds, quick.duration.as_millis()), (1, 300));
        let typed = effort("--quick --rounds 7 --seconds 1.5s").unwrap();
        assert_eq!((typed.rounds, typed.duration.as_millis()), (7, 1_500));
        assert_eq!(effort("").unwrap().rounds, 5);
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        let refused = |line: &str| LIMITS.effort(&typed(line).unwrap()).unwrap_err().to_string();
        assert_eq!(refused("--rounds 0"), "--rounds 0: choose 1 to 100");
        assert_eq!(refused("--rounds 101"), "--rounds 101: choose 1 to 100");
        for text in ["1h", "50ms", "61s", "soon"] {
            let expected = format!("--seconds {text}: choose 0.1s to 60s");
            assert_eq!(refused(&format!("--seconds {text}")), expected);
        }
    }
}
