//! The extent of an experiment's measurements: defaults, and accepted values.

use std::time::Duration;

use anyhow::Result;
use rxo_demo::limits::{duration, within};

use crate::flags::MeasureFlags;

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
    pub(crate) fn effort(&self, flags: &MeasureFlags) -> Result<Effort> {
        let kind = usize::from(flags.extent.quick);
        let rounds = flags.extent.rounds.unwrap_or(self.rounds[kind]);
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
    use crate::flags::ExtentFlags;

    const LIMITS: Limits = Limits {
        rounds: [5, 1],
        most_rounds: 100,
        durations: [Duration::from_secs(2), Duration::from_millis(300)],
        shortest: Duration::from_millis(100),
    };

    #[test]
    fn quick_is_less_unless_more_was_typed() {
        let extent = ExtentFlags { quick: true, ..ExtentFlags::default() };
        let quick = MeasureFlags { extent: extent.clone(), seconds: None };
        let effort = LIMITS.effort(&quick).unwrap();
        assert_eq!((effort.rounds, effort.duration.as_millis()), (1, 300));
        let extent = ExtentFlags { rounds: Some(7), ..extent };
        let typed = MeasureFlags { extent, seconds: Some("1.5s".into()) };
        let effort = LIMITS.effort(&typed).unwrap();
        assert_eq!((effort.rounds, effort.duration.as_millis()), (7, 1_500));
        assert_eq!(LIMITS.effort(&MeasureFlags::default()).unwrap().rounds, 5);
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        let refused = |rounds, seconds: &str| {
            let extent = ExtentFlags { rounds, ..ExtentFlags::default() };
            let flags = MeasureFlags { extent, seconds: Some(seconds.into()) };
            LIMITS.effort(&flags).unwrap_err().to_string()
        };
        assert_eq!(refused(Some(0), "1s"), "--rounds 0: choose 1 to 100");
        assert_eq!(refused(Some(101), "1s"), "--rounds 101: choose 1 to 100");
        for text in ["1h", "50ms", "61s", "soon"] {
            assert_eq!(refused(None, text), format!("--seconds {text}: choose 0.1s to 60s"));
        }
    }
}
