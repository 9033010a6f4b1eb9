//! The plan of `rxo-lab menon card`, from its flags.

use anyhow::Result;
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;

use super::case::Case;
use super::linux::Feed;
use super::prefetch::Prefetch;
use crate::claim::{Fact, if_so};
use crate::flags::{Chosen, Part, RunFlags};
use crate::menon::receive::stack::{PAPERS_LIMIT, Stack};

/// One connection, read on the worker's thread (figures 7 and 8) and on a thread of its own (figures 7 and 9);
/// both with a generator that sends more than the receiver takes; the Aggregation Limit (figure 11); 1 to 400
/// connections (figure 12); requests (table 1); Linux's own stack in a guest (figure 10); a simulation of
/// prefetching (figure 1). Linux senders decide what a poll finds, so that no count is the same everywhere.
pub(crate) const PARTS: &[Part] = &[
    Part::timed("profile"),
    Part::timed("threads"),
    Part::timed("saturation"),
    Part::timed("limit"),
    Part::timed("connections"),
    Part::timed("exchange"),
    Part::timed("linux"),
    Part::timed("prefetch"),
];

/// The measurements to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The cases to measure, without duplicates.
    pub(super) cases: Vec<Case>,
    pub(super) rounds: usize,
    /// Bytes of a transfer whose processor time is measured. Only the middle half counts.
    pub(super) timed_bytes: u64,
    /// Bytes of a transfer whose instructions are counted. Only the middle half counts.
    pub(super) counted_bytes: u64,
    /// Number of one-byte requests whose processor time is measured.
    pub(super) timed_requests: u64,
    pub(super) counted_requests: u64,
    /// Feeds of Linux's own stack.
    pub(super) feeds: Vec<Feed>,
    /// Bytes of the longer of a guest's two transfers.
    pub(super) guest_bytes: usize,
    /// Prefetching modes to simulate.
    pub(super) simulated: Vec<Prefetch>,
    pub(super) cores: Cores,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a number is invalid; the message describes valid values.
    pub(crate) fn from_flags(flags: &RunFlags) -> Result<Self> {
        let (parts, quick) = (flags.chosen(PARTS)?, flags.is_quick());
        let rounds = flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
        within("--rounds", rounds, 1..=MOST_ROUNDS)?;
        let [timed_bytes, counted_bytes] = if quick { QUICK_BYTES } else { BYTES };
        let [timed_requests, counted_requests] = if quick { QUICK_REQUESTS } else { REQUESTS };
        // Experiments that take minutes are left out of a quick run, unless they are named.
        let wanted = |one| parts.has(one) && (parts.is_named(one) || !quick);
        Ok(Self {
            cases: cases(&parts, quick),
            rounds,
            timed_bytes,
            counted_bytes,
            timed_requests,
            counted_requests,
            feeds: Feed::ALL.into_iter().filter(|_| wanted("linux")).collect(),
            guest_bytes: if quick { QUICK_GUEST_BYTES } else { GUEST_BYTES },
            simulated: Prefetch::ALL.into_iter().filter(|_| wanted("prefetch")).collect(),
            cores: Cores::choose(),
        })
    }
}

impl Plan {
    /// Returns the facts in the notes on the method.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let mb = |bytes: u64| (bytes / 1_000_000).to_string();
        let of_cases = [
            ("rounds", self.rounds.to_string()),
            ("timed_mb", mb(self.timed_bytes)),
            ("counted_mb", mb(self.counted_bytes)),
            ("has_cases", String::new()),
        ];
        // The difference of a guest's two transfers.
        let of_guest = [("guest_mb", mb(self.guest_bytes as u64 / 4 * 3))];
        let of_cases = of_cases.into_iter().filter(|_| !self.cases.is_empty());
        let of_guest = of_guest.into_iter().filter(|_| !self.feeds.is_empty());
        let simulated = if_so("is_simulated", !self.simulated.is_empty());
        of_cases.chain(of_guest).chain(simulated).collect()
    }
}

fn cases(parts: &Chosen<'_>, quick: bool) -> Vec<Case> {
    let wanted = |one| parts.has(one);
    let is_long = |one| wanted(one) && (parts.is_named(one) || !quick);
    let mut cases = Vec::new();
    if wanted("profile") {
        cases.push(Case::SINGLE);
        cases.extend(Stack::ALL.map(Case::one_processor));
        cases.push(Case::one_processor(Stack::OPTIMIZED).expanded_by_card());
    }
    if is_long("threads") {
        cases.extend(Stack::ALL.map(Case::two_processors));
        cases.push(Case::two_processors(Stack::OPTIMIZED).expanded_by_card());
    }
    if is_long("saturation") {
        for place in [Case::one_processor, Case::two_processors] {
            cases.extend(Stack::ALL.map(|stack| place(stack).saturated()));
            cases.push(place(Stack::OPTIMIZED).saturated().expanded_by_card());
        }
    }
    if wanted("limit") {
        let limits: &[u16] = if quick { &QUICK_LIMITS } else { &AGGREGATION_LIMITS };
        cases.push(Case::one_processor(Stack::ORIGINAL));
        cases.extend(limits.iter().map(|&limit| Case::one_processor(Stack::limited(limit))));
    }
    if is_long("connections") {
        for connections in CONNECTIONS {
            let case = |stack| Case { connections, ..Case::one_processor(stack) };
            cases.extend([Stack::ORIGINAL, Stack::OPTIMIZED].map(case));
        }
    }
    if wanted("exchange") {
        cases.extend([Stack::ORIGINAL, Stack::OPTIMIZED].map(Case::requests));
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
const CONNECTIONS: [usize; 5] = [1, 5, 25, 100, 400];
const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 100;
/// Bytes of a timed and of a counted transfer. Callgrind slows a receiver by a factor of about fifty.
const BYTES: [u64; 2] = [2_000_000_000, 120_000_000];
const QUICK_BYTES: [u64; 2] = [40_000_000, 12_000_000];

/// Requests of a timed and of a counted transfer.
const REQUESTS: [u64; 2] = [20_000, 1_000];
const QUICK_REQUESTS: [u64; 2] = [400, 80];
const GUEST_BYTES: usize = 16 << 20;
const QUICK_GUEST_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed(line)?)
    }

    #[test]
    fn what_experiments_share_is_measured_once() {
        let whole = plan("").unwrap();
        assert_eq!(whole.cases.len(), 5 + 4 + 8 + 9 + 8 + 2);
        for (n, case) in whole.cases.iter().enumerate() {
            assert!(!whole.cases[..n].contains(case), "{case:?}");
        }
        let rows = [
            ("profile", 5),
            ("threads", 4),
            ("saturation", 8),
            ("limit", 11),
            ("connections", 10),
            ("exchange", 2),
        ];
        for (only, count) in rows {
            assert_eq!(plan(&format!("--only {only}")).unwrap().cases.len(), count, "{only}");
        }
        let quick = plan("--quick").unwrap();
        assert_eq!((quick.cases.len(), quick.feeds.len(), quick.simulated.len()), (8, 0, 0));
        let named = plan("--quick --only linux,prefetch").unwrap();
        assert_eq!((named.cases.len(), named.feeds.len(), named.simulated.len()), (0, 4, 3));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let error = plan("--rounds 101").unwrap_err().to_string();
        assert_eq!(error, "--rounds 101: choose 1 to 100");
    }
}
