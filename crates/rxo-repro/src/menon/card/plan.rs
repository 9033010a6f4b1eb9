//! What the flags of `rxo repro menon card` mean.

use anyhow::Result;

use super::case::Case;
use crate::experiment::Output;
use crate::flags::{CardExperiment, CardFlags};
use crate::limits::within;
use crate::machine::Cores;
use crate::menon::receive::stack::{PAPERS_LIMIT, Stack};

/// What is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// None twice.
    pub(super) cases: Vec<Case>,
    pub(super) rounds: usize,
    /// Bytes of a transfer whose processor time is measured, of which a half counts.
    pub(super) timed_bytes: u64,
    /// Bytes of a transfer whose instructions are counted, likewise.
    pub(super) counted_bytes: u64,
    pub(super) cores: Cores,
    pub(super) output: Output,
}

impl Plan {
    /// The plan for what was typed.
    ///
    /// # Errors
    /// When a number is invalid; the message says what would be accepted.
    pub(crate) fn from_flags(flags: &CardFlags) -> Result<Self> {
        let CardFlags { quick, rounds, json, only, out } = flags;
        let rounds = rounds.unwrap_or(if *quick { 1 } else { ROUNDS });
        within("--rounds", rounds, 1..=MOST_ROUNDS)?;
        let [timed_bytes, counted_bytes] = if *quick { QUICK_BYTES } else { BYTES };
        Ok(Self {
            cases: cases(only, *quick),
            rounds,
            timed_bytes,
            counted_bytes,
            cores: Cores::choose(),
            output: Output::drawn(*json, out)?,
        })
    }
}

fn cases(only: &[CardExperiment], quick: bool) -> Vec<Case> {
    let wanted = |one| only.is_empty() || only.contains(&one);
    let mut cases = Vec::new();
    if wanted(CardExperiment::Profile) {
        cases.push(Case::SINGLE);
        cases.extend(Stack::ALL.map(Case::one_processor));
    }
    if wanted(CardExperiment::Threads) && !(quick && only.is_empty()) {
        cases.extend(Stack::ALL.map(Case::two_processors));
    }
    if wanted(CardExperiment::Limit) {
        let limits: &[u16] = if quick { &QUICK_LIMITS } else { &AGGREGATION_LIMITS };
        cases.push(Case::one_processor(Stack::ORIGINAL));
        cases.extend(limits.iter().map(|&limit| Case::one_processor(Stack::limited(limit))));
    }
    if wanted(CardExperiment::Connections) && !(quick && only.is_empty()) {
        for connections in CONNECTIONS {
            let case = |stack| Case { connections, ..Case::one_processor(stack) };
            cases.extend([Stack::ORIGINAL, Stack::OPTIMIZED].map(case));
        }
    }
    let mut kept = Vec::with_capacity(cases.len());
    cases.into_iter().for_each(|case| {
        if !kept.contains(&case) {
            kept.push(case);
        }
    });
    kept
}

const AGGREGATION_LIMITS: [u16; 10] = [1, 2, 3, 4, 5, 7, 10, PAPERS_LIMIT, 30, 35];
const QUICK_LIMITS: [u16; 2] = [1, PAPERS_LIMIT];
const CONNECTIONS: [usize; 4] = [1, 5, 25, 100];
const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 100;
/// For time and for instructions. Under callgrind a receiver is about fifty times as slow.
const BYTES: [u64; 2] = [2_000_000_000, 120_000_000];
const QUICK_BYTES: [u64; 2] = [40_000_000, 12_000_000];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed::<CardFlags>(line)?)
    }

    #[test]
    fn what_experiments_share_is_measured_once() {
        let whole = plan("").unwrap();
        assert_eq!(whole.cases.len(), 4 + 3 + 9 + 6);
        for (n, case) in whole.cases.iter().enumerate() {
            assert!(!whole.cases[..n].contains(case), "{case:?}");
        }
        let rows = [("profile", 4), ("threads", 3), ("limit", 11), ("connections", 8)];
        for (only, count) in rows {
            assert_eq!(plan(&format!("--only {only}")).unwrap().cases.len(), count, "{only}");
        }
        assert_eq!(plan("--quick").unwrap().cases.len(), 5);
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let error = plan("--rounds 101").unwrap_err().to_string();
        assert_eq!(error, "--rounds 101: choose 1 to 100");
        assert!(plan("--seconds 1s").is_err());
    }
}
