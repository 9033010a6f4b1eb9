//! The plan of `rxo calibrate`, from its flags.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_console::numbers::parse_time;
use rxo_console::paths;

use crate::experiment::Output;
use crate::flags::CalibrateFlags;
use crate::machine::Cores;

/// The work of `rxo calibrate`: the settings to measure, and the time for each.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) settings: &'static [Setting],
    pub(super) rounds: usize,
    /// Time for which one transfer is measured, after the warm-up.
    pub(super) window: Duration,
    /// Time for which a transfer runs before it is measured, so that the TCP windows have opened.
    pub(super) warm_up: Duration,
    /// Time for which the engine alone is measured in each round.
    pub(super) engine: Duration,
    pub(super) cores: Cores,
    pub(super) output: Output,
}

/// One way of receiving the same stream: an MTU and an aggregation limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Maximum length of an IP packet on the wire, in bytes.
    pub(super) mtu: u32,
    /// Maximum number of segments in an aggregate; 1 coalesces nothing.
    pub(super) max_segments: u16,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MTU {}, up to {} in one", self.mtu, self.max_segments)
    }
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If the time or the file is invalid; the message names the accepted values.
    pub(crate) fn from_flags(flags: &CalibrateFlags) -> Result<Self> {
        let CalibrateFlags { seconds, save, json } = flags;
        let all = parse_time(seconds)
            .filter(|time| (SHORTEST..=LONGEST).contains(time))
            .ok_or_else(|| usage(format!("--seconds {seconds}: choose 3 to 600")))?;
        let save = save.as_deref().map(|path| paths::for_file("--save", path)).transpose()?;
        let rounds = (all.as_secs_f64() / ROUND.as_secs_f64()).round().clamp(1.0, 25.0);
        let each = all.div_f64(rounds * SETTINGS.len() as f64);
        Ok(Self {
            settings: &SETTINGS,
            rounds: rounds as usize,
            window: each.saturating_sub(SET_UP + WARM_UP).max(SHORTEST_WINDOW),
            warm_up: WARM_UP,
            engine: ENGINE,
            cores: Cores::choose(),
            output: Output { json: *json, save },
        })
    }
}

/// The settings to measure: from 1 to 1/32 delivery per packet at one packet size, and other packet sizes with
/// equal delivery counts. The fit needs both to distinguish the cost of a packet from the cost of a byte.
const SETTINGS: [Setting; 10] = [
    setting(1_500, 1),
    setting(1_500, 2),
    setting(1_500, 4),
    setting(1_500, 8),
    setting(1_500, 32),
    setting(3_000, 1),
    setting(3_000, 8),
    setting(9_000, 1),
    setting(9_000, 2),
    setting(9_000, 6),
];

const fn setting(mtu: u32, max_segments: u16) -> Setting {
    Setting { mtu, max_segments }
}

const SHORTEST: Duration = Duration::from_secs(3);
const LONGEST: Duration = Duration::from_secs(600);
/// The approximate duration of a round. A longer calibration has more rounds of this duration.
const ROUND: Duration = Duration::from_secs(7);
/// The approximate time to build and remove the network for one measurement.
const SET_UP: Duration = Duration::from_millis(120);
const WARM_UP: Duration = Duration::from_millis(120);
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);
const ENGINE: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(seconds: &str) -> CalibrateFlags {
        CalibrateFlags { seconds: seconds.into(), save: None, json: false }
    }

    #[test]
    fn a_longer_time_is_more_rounds() {
        let rounds = |seconds| Plan::from_flags(&flags(seconds)).unwrap().rounds;
        assert_eq!((rounds("3"), rounds("21"), rounds("60s")), (1, 3, 9));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for seconds in ["1", "601", "soon", "-5"] {
            let error = Plan::from_flags(&flags(seconds)).unwrap_err().to_string();
            assert_eq!(error, format!("--seconds {seconds}: choose 3 to 600"));
        }
    }
}
