//! What the flags of `rxo repro menon --part receive` mean.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_console::numbers::parse_time;
use rxo_console::paths::for_folder;

use super::stack::{Case, PAPERS_LIMIT, Stack};
use crate::flags::{MenonExperiment, MenonFlags};
use crate::machine::Cores;

/// What is to be measured.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Bulk transfers, none twice.
    pub(super) bulk: Vec<Case>,
    /// Stacks that exchange single bytes.
    pub(super) exchange: Vec<Stack>,
    pub(super) rounds: usize,
    /// How long each is measured.
    pub(super) duration: Duration,
    /// How long it runs before.
    pub(super) warm_up: Duration,
    pub(super) cores: Cores,
    pub(super) out: PathBuf,
    pub(super) json: bool,
}

impl Plan {
    /// The plan for what was typed.
    ///
    /// # Errors
    /// When a number or a time cannot be; the message says what would be accepted.
    pub(super) fn from_flags(flags: &MenonFlags) -> Result<Self> {
        if flags.rate.is_some() {
            return Err(usage("--rate is of --part acks; here everything is as fast as it goes"));
        }
        let quick = flags.quick;
        let wanted = |one| flags.only.is_empty() || flags.only.contains(&one);
        let exchange = if wanted(MenonExperiment::Exchange) {
            vec![Stack::ORIGINAL, Stack::OPTIMIZED]
        } else {
            Vec::new()
        };
        Ok(Self {
            bulk: cases(&wanted, quick),
            exchange,
            rounds: rounds(flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS }))?,
            duration: duration(flags.seconds.as_deref(), quick)?,
            warm_up: if quick { QUICK_WARM_UP } else { WARM_UP },
            cores: Cores::choose(),
            out: for_folder("--out", &flags.out)?,
            json: flags.json,
        })
    }

    /// How many measurements there will be.
    pub(super) fn steps(&self) -> usize {
        self.rounds * (self.bulk.len() + self.exchange.len())
    }
}

/// Every bulk transfer that is wanted; what two experiments have in common is measured once.
fn cases(wanted: &dyn Fn(MenonExperiment) -> bool, quick: bool) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut add = |case| {
        if !cases.contains(&case) {
            cases.push(case);
        }
    };
    let (connections, limits): (&[usize], &[u16]) =
        if quick { (&QUICK_CONNECTIONS, &QUICK_LIMITS) } else { (&CONNECTIONS, &LIMITS) };
    for &count in connections {
        let is_profile = count <= PROFILE_CONNECTIONS;
        if wanted(MenonExperiment::Connections) || (is_profile && wanted(MenonExperiment::Profile))
        {
            Stack::ALL.into_iter().for_each(|stack| add(Case::wire(count, stack)));
        }
    }
    if wanted(MenonExperiment::Profile) {
        Stack::ALL.into_iter().for_each(|stack| add(Case::guest(stack)));
    }
    if wanted(MenonExperiment::Limit) {
        add(Case::wire(1, Stack::ORIGINAL));
        limits.iter().for_each(|&limit| add(Case::wire(1, Stack::limited(limit))));
    }
    cases
}

fn rounds(rounds: usize) -> Result<usize> {
    if MOST_ROUNDS.contains(&rounds) {
        return Ok(rounds);
    }
    Err(usage(format!("--rounds {rounds}: choose 1 to 100")))
}

fn duration(seconds: Option<&str>, quick: bool) -> Result<Duration> {
    let Some(text) = seconds else { return Ok(if quick { QUICK_DURATION } else { DURATION }) };
    parse_time(text)
        .filter(|time| DURATIONS.contains(time))
        .ok_or_else(|| usage(format!("--seconds {text}: choose 0.2s to 60s")))
}

const CONNECTIONS: [usize; 7] = [1, 5, 25, 50, 100, 200, 400];
const LIMITS: [u16; 12] = [1, 2, 3, 4, 5, 7, 10, 15, PAPERS_LIMIT, 25, 30, 35];
const QUICK_CONNECTIONS: [usize; 3] = [1, 5, 25];
const QUICK_LIMITS: [u16; 4] = [1, 4, PAPERS_LIMIT, 35];
/// Figures 3, 8, 9 and 10 are of so many at most.
const PROFILE_CONNECTIONS: usize = 5;
const MOST_ROUNDS: RangeInclusive<usize> = 1..=100;
const ROUNDS: usize = 5;
const DURATION: Duration = Duration::from_secs(2);
const QUICK_DURATION: Duration = Duration::from_millis(300);
const DURATIONS: RangeInclusive<Duration> = Duration::from_millis(200)..=Duration::from_secs(60);
/// Past slow start, also of 400.
const WARM_UP: Duration = Duration::from_millis(500);
const QUICK_WARM_UP: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> MenonFlags {
        MenonFlags { quick: true, ..MenonFlags::default() }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let rows = [
            (MenonFlags { rounds: Some(101), ..flags() }, "--rounds 101: choose 1 to 100"),
            (
                MenonFlags { seconds: Some("0.1s".into()), ..flags() },
                "--seconds 0.1s: choose 0.2s to 60s",
            ),
            (
                MenonFlags { rate: Some(200), ..flags() },
                "--rate is of --part acks; here everything is as fast as it goes",
            ),
        ];
        for (flags, message) in rows {
            assert_eq!(Plan::from_flags(&flags).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn what_experiments_share_is_measured_once() {
        let whole = Plan::from_flags(&MenonFlags::default()).unwrap();
        assert_eq!((whole.bulk.len(), whole.exchange.len()), (3 * 7 + 3 + 11, 2));
        assert_eq!(whole.steps(), 5 * 37);
        let only = |one| {
            Plan::from_flags(&MenonFlags { only: vec![one], ..MenonFlags::default() }).unwrap()
        };
        assert_eq!(only(MenonExperiment::Profile).bulk.len(), 9);
        assert_eq!(only(MenonExperiment::Limit).bulk.len(), 13);
        assert_eq!(only(MenonExperiment::Connections).bulk.len(), 21);
        let exchange = only(MenonExperiment::Exchange);
        assert!(exchange.bulk.is_empty() && exchange.exchange.len() == 2);
    }
}
