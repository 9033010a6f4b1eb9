//! The plan of `rxo-lab menon`, from its flags.

use std::time::Duration;

use anyhow::Result;
use rxo_demo::machine::Cores;

use super::stack::{Case, PAPERS_LIMIT, Stack};
use super::units::Units;
use crate::claim::Fact;
use crate::flags::{Part, RunFlags};
use crate::limits::{Effort, Limits};

/// One connection, five, and one of a guest (figures 3 and 7 to 10); the Aggregation Limit (figure 11); 1 to 400
/// connections (figure 12); requests (table 1).
pub(crate) const PARTS: &[Part] = &[
    Part::timed("profile"),
    Part::timed("limit"),
    Part::timed("connections"),
    Part::timed("exchange"),
];

/// The measurements to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Bulk transfers, without duplicates.
    pub(super) bulk: Vec<Case>,
    /// Stacks that exchange single bytes.
    pub(super) exchange: Vec<Stack>,
    pub(super) effort: Effort,
    /// Time that a transfer runs before it is measured.
    pub(super) warm_up: Duration,
    pub(super) cores: Cores,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a number or a time is invalid; the message describes valid values.
    pub(crate) fn from_flags(flags: &RunFlags) -> Result<Self> {
        let (parts, quick) = (flags.chosen(PARTS)?, flags.is_quick());
        let wanted = |one: &str| parts.has(one);
        let exchange =
            if wanted("exchange") { vec![Stack::ORIGINAL, Stack::OPTIMIZED] } else { Vec::new() };
        Ok(Self {
            bulk: cases(&wanted, quick),
            exchange,
            effort: LIMITS.effort(flags)?,
            warm_up: if quick { QUICK_WARM_UP } else { WARM_UP },
            cores: Cores::choose(),
        })
    }
}

impl Plan {
    /// Returns the facts in the notes on the method.
    pub(super) fn facts(&self, units: Units) -> Vec<Fact> {
        let Effort { rounds, duration } = self.effort;
        let clock = match units.cycles(1.0) {
            Some(ghz) => ("ghz", format!("{ghz:.2}")),
            None => ("has_no_clock", String::new()),
        };
        let seconds = duration.as_secs_f64().to_string();
        vec![("rounds", rounds.to_string()), ("seconds", seconds), clock]
    }
}

/// Returns every bulk transfer of the wanted experiments. A transfer that two experiments share is measured
/// once.
fn cases(wanted: &dyn Fn(&str) -> bool, quick: bool) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut add = |case| {
        if !cases.contains(&case) {
            cases.push(case);
        }
    };
    let (connections, limits): (&[usize], &[u16]) = if quick {
        (&QUICK_CONNECTIONS, &QUICK_LIMITS)
    } else {
        (&CONNECTIONS, &AGGREGATION_LIMITS)
    };
    for &count in connections {
        let is_profile = count <= PROFILE_CONNECTIONS;
        if wanted("connections") || (is_profile && wanted("profile")) {
            Stack::ALL.into_iter().for_each(|stack| add(Case::wire(count, stack)));
        }
    }
    if wanted("profile") {
        Stack::ALL.into_iter().for_each(|stack| add(Case::guest(stack)));
    }
    if wanted("limit") {
        add(Case::wire(1, Stack::ORIGINAL));
        limits.iter().for_each(|&limit| add(Case::wire(1, Stack::limited(limit))));
    }
    cases
}

const CONNECTIONS: [usize; 7] = [1, 5, 25, 50, 100, 200, 400];
const AGGREGATION_LIMITS: [u16; 12] = [1, 2, 3, 4, 5, 7, 10, 15, PAPERS_LIMIT, 25, 30, 35];
const QUICK_CONNECTIONS: [usize; 3] = [1, 5, 25];
const QUICK_LIMITS: [u16; 4] = [1, 4, PAPERS_LIMIT, 35];
/// Most connections in figures 3, 8, 9 and 10.
const PROFILE_CONNECTIONS: usize = 5;
const LIMITS: Limits = Limits {
    rounds: [5, 1],
    most_rounds: 100,
    durations: [Duration::from_secs(2), Duration::from_millis(300)],
    shortest: Duration::from_millis(200),
};
/// Time to pass slow start, also with 400 connections.
const WARM_UP: Duration = Duration::from_millis(500);
const QUICK_WARM_UP: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;
    use crate::runner::Experiment;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed(line)?)
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let rows = [
            ("--rounds 101", "--rounds 101: choose 1 to 100"),
            ("--seconds 0.1s", "--seconds 0.1s: choose 0.2s to 60s"),
        ];
        for (flags, message) in rows {
            assert_eq!(plan(flags).unwrap_err().to_string(), message);
        }
        let of_acks = ["--rate 200", "--only split"];
        assert!(of_acks.iter().all(|flags| plan(flags).is_err()));
    }

    #[test]
    fn what_experiments_share_is_measured_once() {
        let whole = plan("").unwrap();
        assert_eq!((whole.bulk.len(), whole.exchange.len()), (3 * 7 + 3 + 11, 2));
        assert_eq!(whole.steps().unwrap(), 5 * 37);
        let only = |one| plan(&format!("--only {one}")).unwrap();
        assert_eq!(only("profile").bulk.len(), 9);
        assert_eq!(only("limit").bulk.len(), 13);
        assert_eq!(only("connections").bulk.len(), 21);
        let exchange = only("exchange");
        assert!(exchange.bulk.is_empty() && exchange.exchange.len() == 2);
    }
}
