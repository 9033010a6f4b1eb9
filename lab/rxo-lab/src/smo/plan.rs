//! The plan of `rxo-lab smo`, from its flags.

use anyhow::Result;
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;

use super::model::return_share;
use super::sender::Way;
use super::{Measured, cost, paper};
use crate::claim::Fact;
use crate::flags::{Part, RunFlags};

/// A timed cast: its way and its number of receivers.
pub(super) type Case = (Way, usize);

/// Figures 6 and 8 by callgrind, and figure 5 on virtual time from these counts; figure 5 with the sender alone
/// on a core; casts to 168 receivers in eight namespaces.
pub(crate) const PARTS: &[Part] =
    &[Part::counted("cost"), Part::counted("simulation"), Part::timed("knee"), Part::timed("real")];

/// The measurements to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Casts whose ACKs are counted.
    pub(super) costs: Vec<cost::Case>,
    /// Number of counted rounds for 168 receivers; fewer receivers get more rounds.
    pub(super) counted_rounds: usize,
    /// Casts on virtual time.
    pub(super) simulated: Vec<Case>,
    pub(super) simulated_bytes: u64,
    /// Casts between cores.
    pub(super) knee: Vec<Case>,
    pub(super) knee_bytes: u64,
    /// Casts in namespaces.
    pub(super) real: Vec<Case>,
    pub(super) real_bytes: u64,
    /// Casts under loss. One receiver is killed, and one is stopped.
    pub(super) hardship: Vec<Case>,
    pub(super) rounds: usize,
    pub(super) cores: Cores,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a number is invalid, or `--only` names no part.
    pub(crate) fn from_flags(flags: &RunFlags) -> Result<Self> {
        let (parts, quick) = (flags.chosen(PARTS)?, flags.is_quick());
        let rounds = flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
        within("--rounds", rounds, 1..=MOST_ROUNDS)?;
        let wanted = |part| parts.has(part);
        let of = |part, quick_ones: &'static [usize], all: Vec<usize>| {
            let receivers = if quick { quick_ones.to_vec() } else { all };
            let both = receivers.into_iter().flat_map(|count| Way::TIMED.map(|way| (way, count)));
            both.filter(|_| wanted(part)).collect::<Vec<Case>>()
        };
        let ends = vec![paper::FEWEST, paper::MOST];
        let simulated =
            of("simulation", &QUICK_RECEIVERS, (11..=21).map(|each| 8 * each).collect());
        let counted: &[usize] = match (wanted("cost"), simulated.is_empty()) {
            (true, _) if !quick => &COUNTED,
            (true, _) => &QUICK_COUNTED,
            (false, false) if quick => &QUICK_COUNTED,
            (false, false) => &[paper::MOST],
            (false, true) => &[],
        };
        let case =
            |receivers: &usize| Way::ALL.map(|way| cost::Case { way, receivers: *receivers });
        Ok(Self {
            costs: counted.iter().flat_map(case).collect(),
            counted_rounds: if quick { QUICK_COUNTED_ROUNDS } else { COUNTED_ROUNDS },
            simulated,
            simulated_bytes: if quick { QUICK_BYTES } else { SIMULATED_BYTES },
            knee: of("knee", &QUICK_RECEIVERS, vec![88, 128, 168]),
            knee_bytes: if quick { QUICK_BYTES } else { KNEE_BYTES },
            real: of("real", &QUICK_REAL, ends),
            real_bytes: if quick { QUICK_BYTES } else { REAL_BYTES },
            hardship: of("real", &QUICK_REAL, vec![paper::MOST]),
            rounds,
            cores: Cores::choose(),
        })
    }
}

impl Plan {
    /// Returns the facts in the notes on the method.
    pub(super) fn facts(&self, measured: &Measured) -> Vec<Fact> {
        let Measured { simulated_rate, knee_rate, acks_a_segment, real, .. } = measured;
        let mbit = |name, rate: &Option<f64>| rate.map(|rate| (name, format!("{:.1}", rate / 1e6)));
        let acks = acks_a_segment.map(|acks| ("acks", format!("{acks:.1}")));
        let share = acks_a_segment
            .map(|acks| ("return_percent", format!("{:.0}", 100.0 * return_share(acks))));
        let real = real.iter().map(|times| times.acks_a_segment).reduce(f64::max);
        let rounds = self.counted_rounds.to_string();
        let all = [
            (!self.costs.is_empty()).then_some(("counted_rounds", rounds)),
            mbit("simulated_mbit", simulated_rate),
            mbit("knee_mbit", knee_rate),
            acks,
            share,
            real.map(|acks| ("real_acks", format!("{acks:.3}"))),
        ];
        all.into_iter().flatten().collect()
    }
}

const COUNTED: [usize; 4] = [8, paper::FEWEST, paper::MOST, 1_000];
const QUICK_COUNTED: [usize; 2] = [8, 24];
/// Numbers of receivers of a quick run; 8 is the number of the paper's machines.
const QUICK_RECEIVERS: [usize; 2] = [8, 24];
const QUICK_REAL: [usize; 1] = [8];
const COUNTED_ROUNDS: usize = 60;
const QUICK_COUNTED_ROUNDS: usize = 10;
/// Bytes of a simulated cast, one fifth of the paper's 2.7 s of link time.
const SIMULATED_BYTES: u64 = 64_000_000;
const KNEE_BYTES: u64 = 320_000_000;
const REAL_BYTES: u64 = 13_000_000;
const QUICK_BYTES: u64 = 1_500_000;
const ROUNDS: usize = 10;
const MOST_ROUNDS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;
    use crate::runner::Experiment;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed(line)?)
    }

    #[test]
    fn parts_are_measured_alone_and_all_without_flags() {
        let count = |line: &str| {
            let Plan { costs, simulated, knee, real, hardship, .. } = plan(line).unwrap();
            [costs.len(), simulated.len(), knee.len(), real.len(), hardship.len()]
        };
        assert_eq!(count(""), [12, 22, 6, 4, 2]);
        assert_eq!(count("--only cost"), [12, 0, 0, 0, 0]);
        assert_eq!(count("--only simulation"), [3, 22, 0, 0, 0], "it needs the costs");
        assert_eq!(count("--only knee,real"), [0, 0, 6, 4, 2]);
        assert_eq!(count("--quick"), [6, 4, 4, 2, 2]);
        assert_eq!(count("--counted"), [6, 4, 0, 0, 0]);
        assert!(!plan("--only cost,simulation").unwrap().needs_networks());
        assert!(plan("--only knee").unwrap().needs_networks());
        let error = plan("--rounds 0").unwrap_err().to_string();
        assert_eq!(error, "--rounds 0: choose 1 to 100");
    }
}
