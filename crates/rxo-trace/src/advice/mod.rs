//! Which settings are enough: the smallest that come close to the best.
//!
//! * `axes`: what is tried by itself when the user sweeps nothing.
//! * `choose`: the smallest values that together keep [`WANTED_SHARE`] of the best.
//! * `linux`: what a rule for polls means for a Linux host.

mod choose;
mod linux;

use self::choose::Candidates;
use crate::report::{Advice, Outcome, Sweep};
use crate::study::Point;
use crate::sweep::SweepAxis;

/// How much of the best is enough.
pub const WANTED_SHARE: f64 = 0.95;

/// The settings that are tried one at a time around `chosen`: how long a poll gathers, how many
/// segments an aggregate may have, how many flows are held at once. What `chosen` has is among the
/// values of the latter two.
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
    let polls = ["20us", "50us", "100us", "200us", "500us"];
    vec![
        SweepAxis {
            key: "poll".to_owned(),
            values: polls.map(|time| format!("time:{time}")).into(),
        },
        axis("max_segments", vec![4, 8, 16, 32, 64], policy.max_segments.into()),
        axis("flows", vec![4, 16, 64, 256], policy.flows.into()),
    ]
}

/// Advice from settings that were tried one at a time; `places` say where in `outcomes` each value's
/// is. `None` when nothing was tried.
pub(crate) fn from_tried(
    tried: &[(SweepAxis, Vec<usize>)],
    outcomes: &[Outcome],
) -> Option<Advice> {
    let chosen = outcomes.first()?;
    let mut axes: Vec<Candidates> = tried
        .iter()
        .map(|(axis, places)| {
            let outcomes = places.iter().filter_map(|place| outcomes.get(*place));
            Candidates::new(&axis.key, axis.values.iter().zip(outcomes))
        })
        .collect();
    if axes.is_empty() {
        return None;
    }
    let expected_share = choose::enough(&mut axes, WANTED_SHARE);
    Some(advice(chosen, &axes, expected_share, false))
}

/// Advice from a sweep of the user's: the combination of which each value is as small as it can be.
pub(crate) fn from_sweep(sweep: &Sweep, chosen: &Outcome) -> Option<Advice> {
    let (axes, expected_share) = choose::from_grid(sweep, WANTED_SHARE)?;
    Some(advice(chosen, &axes, expected_share, true))
}

fn advice(chosen: &Outcome, axes: &[Candidates], expected_share: f64, is_exact: bool) -> Advice {
    Advice {
        wanted_share: WANTED_SHARE,
        basis: format!("{} with --poll {}", chosen.policy, chosen.poll),
        choices: axes.iter().map(Candidates::choice).collect(),
        expected_share,
        is_exact,
        linux: axes.iter().find_map(|axis| linux::advice(axis.chosen()?)),
    }
}
