//! What the flags of `rxo repro gallatin` mean.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use rxo_coalesce::Hold;
use rxo_console::fault::usage;
use rxo_console::numbers::parse_time;
use rxo_console::paths::for_folder;

use super::peer::Peer;
use crate::flags::GallatinFlags;
use crate::machine::Cores;
use crate::sending::{Setup, Way};

/// What is to be repeated.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) connections: usize,
    pub(super) rounds: usize,
    pub(super) duration: Duration,
    /// Where the figures are written.
    pub(super) out: PathBuf,
    pub(super) json: bool,
}

impl Plan {
    /// The plan for what was typed.
    ///
    /// # Errors
    /// When a number or a time cannot be; the message says what would be accepted.
    pub(super) fn from_flags(flags: &GallatinFlags) -> Result<Self> {
        let GallatinFlags { quick, connections, .. } = *flags;
        let rounds = flags.rounds.unwrap_or(if quick { 1 } else { 10 });
        within("--connections", connections, CONNECTIONS)?;
        within("--rounds", rounds, ROUNDS)?;
        let text = flags.seconds.as_deref().unwrap_or(if quick { "0.2s" } else { "1s" });
        let duration = parse_time(text)
            .filter(|time| (SHORTEST..=LONGEST).contains(time))
            .ok_or_else(|| usage(format!("--seconds {text}: choose 0.1s to 60s")))?;
        let (out, json) = (for_folder("--out", &flags.out)?, flags.json);
        Ok(Self { connections, rounds, duration, out, json })
    }

    /// How many measurements there will be.
    pub(super) const fn steps(&self) -> usize {
        self.rounds * Peer::ALL.len() * Way::ALL.len()
    }

    /// Every measurement: the rounds one after the other, in each all peers, for each all ways.
    pub(super) fn order(&self) -> impl Iterator<Item = (usize, Peer, Way)> {
        (0..self.rounds).flat_map(|round| {
            Peer::ALL.into_iter().flat_map(move |peer| {
                (0..Way::ALL.len()).map(move |index| (round, peer, Way::in_round(round, index)))
            })
        })
    }

    /// One measurement with this receiver.
    pub(super) fn setup(&self, peer: Peer) -> Setup {
        Setup {
            connections: self.connections,
            bulk: self.duration,
            warm_up: WARM_UP.min(self.duration),
            cores: Cores::choose(),
            acks: peer.acks(),
            hold: Hold::EndOfPoll,
        }
    }
}

fn within(flag: &str, value: usize, range: RangeInclusive<usize>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (from, to) = range.into_inner();
    Err(usage(format!("{flag} {value}: choose {from} to {to}")))
}

const CONNECTIONS: RangeInclusive<usize> = 1..=400;
const ROUNDS: RangeInclusive<usize> = 1..=1_000;
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);
const WARM_UP: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed::<GallatinFlags>(line)?)
    }

    #[test]
    fn without_flags_it_is_the_papers_ten_iterations() {
        let plan = plan("").unwrap();
        assert_eq!((plan.rounds, plan.connections, plan.steps()), (10, 1, 90));
        let order: Vec<_> = plan.order().collect();
        assert_eq!(order.len(), 90);
        assert_eq!(order[0], (0, Peer::Rarely, Way::KernelGro));
        assert_eq!(
            order[9],
            (1, Peer::Rarely, Way::NoAggregation),
            "each round begins with another"
        );
    }

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
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
