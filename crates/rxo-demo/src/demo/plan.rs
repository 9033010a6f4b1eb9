//! The plan of `rxo demo`, from its flags.

use std::time::Duration;

use anyhow::Result;
use rxo::live::defaults;
use rxo_coalesce::Policy;
use rxo_console::output::fields;
use rxo_testbed::LabOptions;

use super::findings::Setup;
use super::path::Path;
use crate::experiment::Output;
use crate::flags::DemoFlags;
use crate::limits::{duration, within};
use crate::machine::Cores;

/// The work of `rxo demo`: the transfers to measure, and the number of rounds.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) connections: usize,
    pub(super) rounds: usize,
    /// `true` if the bare loop is measured as well.
    pub(super) floor: bool,
    /// Time for which one bulk transfer is measured, after the warm-up.
    pub(super) bulk: Duration,
    /// Time for which a transfer runs before it is measured, so that the TCP windows have opened.
    pub(super) warm_up: Duration,
    pub(super) request_response: Duration,
    pub(super) cores: Cores,
    pub(super) output: Output,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a number or a time is invalid; the message names the accepted values.
    pub(crate) fn from_flags(flags: &DemoFlags) -> Result<Self> {
        let DemoFlags { connections, rounds, seconds, floor, json, .. } = flags;
        within("--connections", *connections, 1..=400)?;
        within("--rounds", *rounds, 1..=1_000)?;
        let bulk = duration(seconds, SHORTEST..=LONGEST)?;
        Ok(Self {
            connections: *connections,
            rounds: *rounds,
            floor: *floor,
            bulk,
            warm_up: WARM_UP,
            request_response: REQUEST_RESPONSE.min(bulk),
            cores: Cores::choose(),
            output: Output { json: *json, ..Output::default() },
        })
    }

    /// Returns the paths to measure.
    pub(super) fn paths(&self) -> &'static [Path] {
        Path::ALL.split_at(Path::ALL.len() - usize::from(!self.floor)).0
    }

    /// Returns the settings of the plan that the findings report.
    pub(super) fn setup(&self) -> Setup {
        Setup {
            rounds: self.rounds,
            bulk_s: self.bulk.as_secs_f64(),
            request_response_s: self.request_response.as_secs_f64(),
            mtu: LabOptions::default().mtu,
            sender_core: self.cores.sender,
            receiver_core: self.cores.receiver,
            policy: fields(defaults::live(Policy::linux_gro()).settings()),
        }
    }
}

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);
const WARM_UP: Duration = Duration::from_millis(150);
const REQUEST_RESPONSE: Duration = Duration::from_millis(350);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::flags::typed;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed::<DemoFlags>(line)?)
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let rows = [
            ("--connections 0", "--connections 0: choose 1 to 400"),
            ("--connections 401", "--connections 401: choose 1 to 400"),
            ("--rounds 0", "--rounds 0: choose 1 to 1000"),
            ("--seconds 1h", "--seconds 1h: choose 0.1s to 60s"),
            ("--seconds 50ms", "--seconds 50ms: choose 0.1s to 60s"),
        ];
        for (line, message) in rows {
            assert_eq!(plan(line).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_short_run_is_short_throughout() {
        let plan = plan("--connections 400 --rounds 3 --seconds 200ms").unwrap();
        assert_eq!(plan.request_response, Duration::from_millis(200));
        assert_eq!(plan.steps().unwrap(), 15);
    }

    #[test]
    fn the_floor_is_a_path_if_asked() {
        assert_eq!(plan("--floor --rounds 3").unwrap().steps().unwrap(), 18);
    }
}
