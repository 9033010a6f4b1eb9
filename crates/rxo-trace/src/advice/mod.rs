//! Advice: decides whether coalescing is worth it, and finds the smallest settings that come close to the best.
//!
//! * `decide`: decides whether coalescing is worth it, from the cost of receiving (`load`).
//! * `scope`: the packets to which the decision applies.
//! * `polls`: the results of other poll rules.
//! * `axes`: the settings that are tried if the user does not request a sweep.
//! * `choose`: the smallest values that together keep [`WANTED_SHARE`] of the best.
//! * `live`: the decision for a live interface.
//! * `linux`: the settings of a Linux host for a poll rule.

mod choose;
mod decide;
mod linux;
mod live;
mod load;
mod polls;
mod scope;

pub(crate) use self::decide::decision;
pub(crate) use self::live::decide_live;
pub(crate) use self::load::{Delivered, receiver};
pub(crate) use self::polls::MOST_POLLS;
pub(crate) use self::scope::is_for_first;

use self::choose::Candidates;
use crate::projection::Costs;
use crate::report::{Advice, LinuxAdvice, Outcome, Sweep, Traffic};
use crate::study::{Point, PollRule};
use crate::sweep::SweepAxis;

/// The share of the best result that counts as enough, from 0 to 1.
pub const WANTED_SHARE: f64 = 0.95;

/// Returns the settings to try: segments per aggregate, and flows held at once. In each attempt only one
/// setting differs from `chosen`. The values begin at 1 and include the value of `chosen`, so that a figure
/// shows from which value on larger values gain nothing more.
#[must_use]
pub(crate) fn axes(chosen: &Point) -> Vec<SweepAxis> {
    let policy = &chosen.policy;
    if !policy.coalesce {
        return Vec::new();
    }
    let axis = |key: &str, mut values: Vec<u64>, own: u64| {
        values.push(own);
        values.sort_unstable();
        values.dedup();
        let values = values.iter().map(ToString::to_string).collect();
        SweepAxis { key: key.to_owned(), values }
    };
    vec![
        axis("max_segments", vec![1, 4, 16, 64], policy.max_segments.into()),
        axis("flows", vec![1, 4, 16], policy.flows.into()),
    ]
}

/// Returns the poll rules to try instead of the rule of `chosen`, which is included in the result. Empty if
/// `chosen` does not coalesce.
#[must_use]
pub(crate) fn polls(chosen: &Point) -> Vec<PollRule> {
    if chosen.policy.coalesce { polls::rules(chosen.poll) } else { Vec::new() }
}

/// The settings that were tried for advice, and the indices of their outcomes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts {
    /// The limits on segments per aggregate whose outcomes are computed; `None` if no such outcomes are
    /// computed.
    pub(crate) limits: Option<SweepAxis>,
    /// The settings that were tried; each value has the index of its outcome.
    pub(crate) axes: Vec<(SweepAxis, Vec<usize>)>,
    /// The indices of the outcomes of the poll rules that were tried.
    pub(crate) polls: Vec<usize>,
}

/// Returns advice from settings that were tried one at a time; all other settings were the settings of the
/// first outcome in `outcomes`. `limited` are the outcomes of the limits on segments per aggregate, and `delivered` the
/// packets that the decision is for, under each poll rule of `attempts`. `None` if nothing was tried.
pub(crate) fn from_tried(
    attempts: &Attempts,
    (outcomes, limited): (&[Outcome], &[Outcome]),
    delivered: &[Delivered],
    (traffic, costs): (&Traffic, Costs),
) -> Option<Advice> {
    let chosen = outcomes.first()?;
    let at = |places: &[usize]| -> Vec<&Outcome> {
        places.iter().filter_map(|place| outcomes.get(*place)).collect()
    };
    let limits = attempts
        .limits
        .iter()
        .map(|axis| Candidates::new(&axis.key, axis.values.iter().zip(limited)));
    let tried = attempts
        .axes
        .iter()
        .map(|(axis, places)| Candidates::new(&axis.key, axis.values.iter().zip(at(places))));
    let mut axes: Vec<Candidates> = limits.chain(tried).collect();
    if axes.is_empty() {
        return None;
    }
    let polls = polls::tried(&at(&attempts.polls), delivered, &chosen.poll, (traffic, costs));
    let fewer_packets = polls.iter().find(|poll| poll.is_chosen).map(|poll| poll.fewer_packets);
    let linux = linux::advice(chosen).map(|linux| LinuxAdvice {
        fewer_packets: fewer_packets.unwrap_or(linux.fewer_packets),
        ..linux
    });
    let expected_share = choose::enough(&mut axes, WANTED_SHARE);
    Some(Advice {
        better_poll: polls::better(&polls),
        polls,
        linux,
        ..advice(chosen, &axes, expected_share, false)
    })
}

/// Returns advice from the user's sweep: the smallest combination of values that keeps [`WANTED_SHARE`] of the
/// best result. `None` for an empty sweep.
pub(crate) fn from_sweep(sweep: &Sweep, chosen: &Outcome) -> Option<Advice> {
    let (axes, expected_share) = choose::from_grid(sweep, WANTED_SHARE)?;
    let linux = axes.iter().find_map(|axis| linux::advice(axis.chosen()?));
    Some(Advice { linux, ..advice(chosen, &axes, expected_share, true) })
}

fn advice(chosen: &Outcome, axes: &[Candidates], expected_share: f64, is_exact: bool) -> Advice {
    Advice {
        wanted_share: WANTED_SHARE,
        basis: format!("{} with --poll {}", chosen.policy, chosen.poll),
        choices: axes.iter().map(Candidates::choice).collect(),
        expected_share,
        is_exact,
        ..Advice::default()
    }
}
