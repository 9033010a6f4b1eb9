//! Verdicts on the rows, as sentences that depend only on the rows.

use super::keep;
use super::network::{Network, ROUND_TRIP};
use super::sender::Sender;
use super::split::{Row, Treatment};
use crate::menon::verdict::Verdict;

/// Returns the verdicts on the first experiment.
pub(super) fn of_split(rows: &[Row]) -> Vec<Verdict> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut verdicts = vec![
        coalescing_takes_acks(rows),
        splitting_gives_them_back(rows),
        a_counting_sender_is_later(rows),
        splitting_makes_up_for_it(rows),
        splitting_each_makes_up_for_it(rows),
    ];
    verdicts.extend(Sender::LINUX.iter().filter_map(|&sender| linux_does_not_care(sender, rows)));
    verdicts
}

/// Returns the verdicts on the second experiment.
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
    let claim = "Linux senders, which count bytes, do as well when rxo aggregates their pure ACKs";
    vec![Verdict::new(claim, Some(choice.is_some()), format!("{harm} {chosen}"))]
}

fn find(rows: &[Row], sender: Sender, network: Network, treatment: Treatment) -> Option<&Row> {
    rows.iter()
        .find(|row| row.sender == sender && row.network == network && row.treatment == treatment)
}

fn coalescing_takes_acks(rows: &[Row]) -> Verdict {
    let claim = "a receiver that is given aggregates acknowledges aggregates";
    compared(claim, rows, [Treatment::None, Treatment::Coalesced], |without, with| {
        let [a, b] = [without, with].map(|row| row.figures.acks_per_segment.median);
        (
            b < SHARE_TAKEN * a,
            format!("{a:.2} ACKs for a segment without coalescing, {b:.2} with it"),
        )
    })
}

fn splitting_gives_them_back(rows: &[Row]) -> Verdict {
    let claim = "with splitting the sender sees about as many ACKs as without coalescing";
    compared(claim, rows, [Treatment::None, Treatment::Split], |without, with| {
        let [a, b] = [without, with].map(|row| row.figures.acks_per_segment.median);
        let is_alike = (b - a).abs() < SHARE_APART * a;
        (is_alike, format!("{a:.2} ACKs for a segment without coalescing, {b:.2} with splitting"))
    })
}

fn a_counting_sender_is_later(rows: &[Row]) -> Verdict {
    let claim =
        "a sender that counts ACKs comes to its rate later behind a receiver that coalesces";
    compared(claim, rows, [Treatment::None, Treatment::Coalesced], |without, with| {
        let found = format!("{}; with coalescing {}", pace(without), pace(with));
        (is_later(with, without).unwrap_or_else(|| is_slower(with, without)), found)
    })
}

fn splitting_makes_up_for_it(rows: &[Row]) -> Verdict {
    let claim = "with its ACKs split again it comes to its rate no later than without coalescing";
    compared(claim, rows, [Treatment::None, Treatment::Split], |without, with| {
        let found = format!("{}; with splitting {}", pace(without), pace(with));
        (!is_later(with, without).unwrap_or_else(|| is_slower(with, without)), found)
    })
}

fn splitting_each_makes_up_for_it(rows: &[Row]) -> Verdict {
    let claim = "with an ACK for each segment, as Linux acknowledges the first of a connection, it \
                 comes to its rate no later than without coalescing";
    compared(claim, rows, [Treatment::None, Treatment::SplitEach], |without, with| {
        let found = format!("{}; with --ack-split 1 {}", pace(without), pace(with));
        (!is_later(with, without).unwrap_or_else(|| is_slower(with, without)), found)
    })
}

/// Compares two treatments of the counting sender's frames over the delay.
fn compared(
    claim: &str,
    rows: &[Row],
    treatments: [Treatment; 2],
    verdict: impl FnOnce(&Row, &Row) -> (bool, String),
) -> Verdict {
    let of = |treatment| find(rows, Sender::Counting, Network::Delay, treatment);
    let (holds, found) = match treatments.map(of) {
        [Some(one), Some(other)] => {
            let (holds, found) = verdict(one, other);
            (Some(holds), format!("over 20 ms {found}."))
        }
        _ => (None, "It was not measured over a delay.".to_owned()),
    };
    Verdict::new(claim, holds, found)
}

/// Compares a Linux sender without coalescing, with coalescing, and with splitting: the rates, and the cost
/// of splitting. `None` unless all were measured.
fn linux_does_not_care(sender: Sender, rows: &[Row]) -> Option<Verdict> {
    let of = |treatment| find(rows, sender, Network::Delay, treatment);
    let (none, coalesced) = (of(Treatment::None)?, of(Treatment::Coalesced)?);
    let split = of(Treatment::Split)?;
    let costs = [coalesced, split].map(|row| row.figures.cpu_s_per_gb.median);
    let found = format!(
        "over 20 ms {} without coalescing; {} with it; {} with splitting. Splitting takes {:.2} \
         CPU s/GB instead of {:.2} ({:+.0} %).",
        pace(none),
        pace(coalesced),
        pace(split),
        costs[1],
        costs[0],
        100.0 * (costs[1] / costs[0] - 1.0)
    );
    let is_behind = |one, other| is_later(one, other).unwrap_or(false) || is_slower(one, other);
    let claim = format!(
        "Linux {} counts bytes: it loses nothing by fewer ACKs and gains nothing by splitting",
        sender.name()
    );
    let holds = !is_behind(coalesced, none) && !is_behind(coalesced, split);
    Some(Verdict::new(claim, Some(holds), found))
}

fn is_slower(one: &Row, other: &Row) -> bool {
    one.figures.mbit_per_s.median < ALIKE * other.figures.mbit_per_s.median
}

/// Returns a phrase with the time to full rate and the total rate.
fn pace(row: &Row) -> String {
    let mbit_per_s = row.figures.mbit_per_s.median;
    format!("at 90 % of the link {}, {mbit_per_s:.0} Mbit/s in all", time_of(row))
}

/// Returns `true` if `one` reached full rate later than `other`, by more than the variation between
/// measurements; `None` if neither reached it.
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

/// Ratio from which two throughputs count as equal.
const ALIKE: f64 = 0.95;
/// Largest share of ACKs that counts as clearly fewer.
const SHARE_TAKEN: f64 = 0.7;
/// Largest relative difference at which two ACK rates count as equal.
const SHARE_APART: f64 = 0.35;
const MOST_TIMES: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::super::sample::tests::sample;
    use super::super::sample::{Figures, Sample};
    use super::*;

    fn row(sender: Sender, treatment: Treatment, full_ms: Option<f64>, acks: f64) -> Row {
        let sample = Sample { acks_per_segment: acks, ..sample(500.0, full_ms) };
        let figures = Figures::of(&[sample]).unwrap();
        Row { sender, network: Network::Delay, treatment, figures }
    }

    fn rows(split_ms: Option<f64>) -> Vec<Row> {
        vec![
            row(Sender::Counting, Treatment::None, Some(300.0), 0.5),
            row(Sender::Counting, Treatment::Coalesced, None, 0.06),
            row(Sender::Counting, Treatment::Split, split_ms, 0.5),
            row(Sender::Counting, Treatment::SplitEach, Some(300.0), 1.0),
        ]
    }

    fn held(rows: &[Row]) -> Vec<Option<bool>> {
        of_split(rows).into_iter().map(|verdict| verdict.holds).collect()
    }

    #[test]
    fn what_is_said_follows_from_the_rows() {
        assert_eq!(held(&rows(Some(310.0))), [Some(true); 5]);
        let late = [Some(true), Some(true), Some(true), Some(false), Some(true)];
        assert_eq!(held(&rows(Some(900.0))), late);
        assert_eq!(held(&rows(None)), late);
        assert_eq!(held(&rows(None)[..1]), [None; 5]);
        assert!(of_split(&[]).is_empty());
    }

    #[test]
    fn a_linux_sender_that_gains_by_splitting_is_told() {
        let of = |treatment, full_ms| row(Sender::Reno, treatment, Some(full_ms), 0.5);
        let rows = |coalesced| {
            [
                of(Treatment::None, 100.0),
                of(Treatment::Coalesced, coalesced),
                of(Treatment::Split, 100.0),
            ]
        };
        assert_eq!(held(&rows(105.0))[5], Some(true));
        assert_eq!(held(&rows(400.0))[5], Some(false));
        let text = of_split(&rows(105.0))[5].text();
        assert!(text.starts_with("holds: Linux reno counts bytes"), "{text}");
        assert!(text.contains("2.00 CPU s/GB instead of 2.00 (+0 %)"), "{text}");
    }
}
