//! The plan of `rxo-lab gallatin`, from its flags.

use std::time::Duration;

use anyhow::Result;
use rxo_coalesce::Hold;
use rxo_demo::experiment::Output;
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;
use rxo_demo::sending::Setup;

use super::peer::Peer;
use crate::flags::GallatinFlags;

use crate::limits::{Effort, Limits};

/// The measurements to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) connections: usize,
    pub(super) effort: Effort,
    pub(super) output: Output,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a number or a time is invalid; the message describes valid values.
    pub(crate) fn from_flags(flags: &GallatinFlags) -> Result<Self> {
        let GallatinFlags { measure, connections, out } = flags;
        within("--connections", *connections, 1..=MOST_CONNECTIONS)?;
        Ok(Self {
            connections: *connections,
            effort: LIMITS.effort(measure)?,
            output: Output::drawn(measure.extent.json, out)?,
        })
    }

    /// Returns the setup of one measurement with this receiver.
    pub(super) fn setup(&self, peer: Peer) -> Setup {
        let bulk = self.effort.duration;
        Setup {
            connections: self.connections,
            bulk,
            warm_up: WARM_UP.min(bulk),
            cores: Cores::choose(),
            acks: peer.acks(),
            hold: Hold::EndOfPoll,
            moderation: MODERATION,
        }
    }
}

/// Limits of rounds and times. The paper used ten iterations.
const LIMITS: Limits = Limits {
    rounds: [10, 1],
    most_rounds: 1_000,
    durations: [Duration::from_secs(1), Duration::from_millis(200)],
    shortest: Duration::from_millis(100),
};
/// Interrupt delay of the paper's driver by default (`myri10ge_intr_coal_delay`), used for all its rows.
pub(super) const MODERATION: Duration = Duration::from_micros(75);
const MOST_CONNECTIONS: usize = 400;
const WARM_UP: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;
    use rxo_demo::experiment::Experiment;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed::<GallatinFlags>(line)?)
    }

    #[test]
    fn without_flags_it_is_the_papers_ten_iterations() {
        let plan = plan("").unwrap();
        assert_eq!((plan.effort.rounds, plan.connections, plan.steps().unwrap()), (10, 1, 90));
        let moderated = Peer::ALL.map(|peer| plan.setup(peer).moderation.as_micros());
        assert_eq!(moderated, [75; 3], "alike with every receiver");
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("--connections 0", "--connections 0: choose 1 to 400"),
            ("--rounds 0", "--rounds 0: choose 1 to 1000"),
            ("--seconds 1h", "--seconds 1h: choose 0.1s to 60s"),
            ("--out Cargo.toml", "--out Cargo.toml: that is a file"),
        ];
        for (flags, message) in rows {
            let error = plan(flags).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
