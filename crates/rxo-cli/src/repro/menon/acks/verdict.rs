//! What the rows say, in sentences that depend on nothing but the rows.

use serde::Serialize;

use super::keep;
use super::network::{Network, ROUND_TRIP};
use super::sender::Sender;
use super::split::{Row, Treatment};
use crate::wrap::wrapped;

/// One claim, held against what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    pub(super) claim: String,
    /// Whether it is so here; `None` when there is nothing to tell it from.
    pub(super) holds: Option<bool>,
    /// What was found here.
    pub(super) found: String,
}

impl Verdict {
    pub(super) fn text(&self) -> String {
        let verdict = match self.holds {
            Some(true) => "holds",
            Some(false) => "DOES NOT HOLD",
            None => "not measured",
        };
        wrapped(&format!("{verdict}: {}. Here: {}", self.claim, self.found))
    }
}

/// Everything that can be said of the first experiment.
pub(super) fn of_split(rows: &[Row]) -> Vec<Verdict> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut verdicts = vec![coalescing_takes_acks(rows), a_counting_sender_is_later(rows)];
    verdicts.extend(Sender::LINUX.iter().filter_map(|&sender| linux_does_not_care(sender, rows)));
    verdicts
}

/// What can be said of the second.
pub(super) fn of_keep(rows: &[keep::Row]) -> Vec<Verdict> {
    let harmful: Vec<String> = rows
        .iter()
        .filter(|row| row.keep_every.is_some() && keep::harms(row, rows))
        .map(|row| format!("{} with {}", row.sender.name(), keep::shown(row.keep_every)))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let harm = if harmful.is_empty() {
        "None of those tried harms any sender.".to_owned()
    } else {
        format!("Slower or later than without: {}.", harmful.join(", "))
    };
    let choice = keep::choice(rows);
    let chosen = choice.map_or("No setting is harmless.".to_owned(), |count| {
        format!("The largest that is harmless, and all below it: keep_every = {count}.")
    });
    vec![Verdict {
        claim: "Linux senders, which count bytes, do as well when rxo aggregates their pure ACKs"
            .into(),
        holds: Some(choice.is_some()),
        found: format!("{harm} {chosen}"),
    }]
}

fn find(rows: &[Row], sender: Sender, network: Network, treatment: Treatment) -> Option<&Row> {
    rows.iter()
        .find(|row| row.sender == sender && row.network == network && row.treatment == treatment)
}

fn coalescing_takes_acks(rows: &[Row]) -> Verdict {
    let per_segment = |treatment| {
        let of = rows.iter().filter(|row| row.treatment == treatment);
        let values = of.map(|row| row.figures.acks_per_segment.median);
        values.clone().reduce(f64::min).zip(values.reduce(f64::max))
    };
    let claim = "a receiver that is given aggregates acknowledges aggregates".to_owned();
    let (Some(without), Some(with)) =
        (per_segment(Treatment::None), per_segment(Treatment::Coalesced))
    else {
        return Verdict { claim, holds: None, found: "Not all treatments were measured.".into() };
    };
    let found = format!(
        "{:.2} to {:.2} ACKs for a segment without coalescing, {:.2} to {:.2} with it.",
        without.0, without.1, with.0, with.1
    );
    Verdict { claim, holds: Some(with.1 < without.0), found }
}

fn a_counting_sender_is_later(rows: &[Row]) -> Verdict {
    let of = |treatment| find(rows, Sender::Counting, Network::Delay, treatment);
    let claim =
        "a sender that counts ACKs comes to its rate later behind a receiver that coalesces"
            .to_owned();
    let (Some(without), Some(with)) = (of(Treatment::None), of(Treatment::Coalesced)) else {
        return Verdict { claim, holds: None, found: "It was not measured over a delay.".into() };
    };
    let found = format!(
        "over 20 ms it is at 90 % of the link's rate {} without coalescing and {} with it, and \
         carries {:.0} and {:.0} Mbit/s in all.",
        time_of(without),
        time_of(with),
        without.figures.mbit_per_s.median,
        with.figures.mbit_per_s.median
    );
    Verdict { claim, holds: is_later(with, without), found }
}

fn linux_does_not_care(sender: Sender, rows: &[Row]) -> Option<Verdict> {
    let of = |treatment| find(rows, sender, Network::Delay, treatment);
    let (without, with) = (of(Treatment::None)?, of(Treatment::Coalesced)?);
    let found = format!(
        "at 90 % {} without coalescing, {} with it; {:.0} and {:.0} Mbit/s; {:.2} and {:.2} CPU s/GB.",
        time_of(without),
        time_of(with),
        without.figures.mbit_per_s.median,
        with.figures.mbit_per_s.median,
        without.figures.cpu_s_per_gb.median,
        with.figures.cpu_s_per_gb.median
    );
    let is_as_fast = with.figures.mbit_per_s.median >= ALIKE * without.figures.mbit_per_s.median;
    let claim = format!("Linux {} counts bytes and loses nothing by fewer ACKs", sender.name());
    let holds = is_later(with, without).map_or(is_as_fast, |is_later| is_as_fast && !is_later);
    Some(Verdict { claim, holds: Some(holds), found })
}

/// Whether `one` came to full rate later than `other`, by more than measurements vary. `None` when
/// neither came so far.
fn is_later(one: &Row, other: &Row) -> Option<bool> {
    match (one.figures.always_full_ms(), other.figures.always_full_ms()) {
        (Some(one), Some(other)) => Some(one > MOST_TIMES * other + ROUND_TRIP.as_secs_f64() * 1e3),
        (None, Some(_)) => Some(true),
        (Some(_), None) => Some(false),
        (None, None) => None,
    }
}

fn time_of(row: &Row) -> String {
    let figures = &row.figures;
    match figures.always_full_ms() {
        Some(millis) => format!("after {millis:.0} ms"),
        None if figures.full_rate_rounds > 0 => "not in every round".to_owned(),
        None => "never in the time measured".to_owned(),
    }
}

/// What counts as the same throughput.
const ALIKE: f64 = 0.95;
const MOST_TIMES: f64 = 1.1;
