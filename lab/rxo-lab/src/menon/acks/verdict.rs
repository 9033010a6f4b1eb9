//! The claims that the rows decide.

use super::keep;
use super::network::{Network, ROUND_TRIP};
use super::sender::Sender;
use super::split::{Row, Treatment};
use crate::claim::Claim;

/// Returns the claims of the first experiment.
pub(super) fn of_split(rows: &[Row]) -> Vec<Claim> {
    let acks = |id, treatment| {
        compared(id, rows, treatment, |without, with| {
            let [a, b] = [without, with].map(|row| row.figures.acks_per_segment.median);
            (Some(b / a), format!("{a:.2} ACKs for a segment without coalescing, {b:.2} here."))
        })
    };
    let later = |id, treatment| {
        compared(id, rows, treatment, |without, with| {
            let found = format!("Over 20 ms {}; here {}.", pace(without), pace(with));
            (later_ms(with, without), found)
        })
    };
    let linux = [
        ("menon-acks.linux.reno", Sender::Reno),
        ("menon-acks.linux.cubic", Sender::Cubic),
        ("menon-acks.linux.bbr", Sender::Bbr),
    ];
    let of_linux =
        linux.into_iter().filter_map(|(id, sender)| linux_does_not_care(id, sender, rows));
    [
        acks("menon-acks.coalescing-takes", Treatment::Coalesced),
        acks("menon-acks.splitting-returns", Treatment::Split),
        later("menon-acks.counting.later", Treatment::Coalesced),
        later("menon-acks.counting.split", Treatment::Split),
        later("menon-acks.counting.split-each", Treatment::SplitEach),
    ]
    .into_iter()
    .chain(of_linux)
    .collect()
}

/// Returns the claim of the second experiment; none without rows.
pub(super) fn of_keep(rows: &[keep::Row]) -> Option<Claim> {
    let harmful: Vec<String> = rows
        .iter()
        .filter(|row| row.keep_every.is_some() && keep::harms(row, rows))
        .map(|row| format!("{} with {}", row.sender.name(), keep::shown(row.keep_every)))
        .collect();
    let harm = if harmful.is_empty() {
        "None of those tried harms any sender.".to_owned()
    } else {
        format!("Slower or later than without: {}.", harmful.join(", "))
    };
    let choice = f64::from(keep::choice(rows).unwrap_or(1));
    (!rows.is_empty()).then(|| Claim::new("menon-acks.keep-every", Some(choice), harm))
}

/// Compares the counting sender's frames without coalescing, over the delay, to those of a treatment.
fn compared(
    id: &str,
    rows: &[Row],
    treatment: Treatment,
    value: impl FnOnce(&Row, &Row) -> (Option<f64>, String),
) -> Claim {
    let of = |treatment| find(rows, Sender::Counting, treatment);
    let found = of(Treatment::None).zip(of(treatment)).map(|(one, other)| value(one, other));
    let (ours, detail) = found.unzip();
    Claim::new(id, ours.flatten(), detail).because(|| {
        "No comparison: neither came to 90 % of the link, or not both were measured.".to_owned()
    })
}

fn find(rows: &[Row], sender: Sender, treatment: Treatment) -> Option<&Row> {
    let is_it = |row: &&Row| {
        row.sender == sender && row.network == Network::Delay && row.treatment == treatment
    };
    rows.iter().find(is_it)
}

/// Compares a Linux sender's throughput with coalescing to that without and to that with splitting. `None`
/// unless all were measured.
fn linux_does_not_care(id: &str, sender: Sender, rows: &[Row]) -> Option<Claim> {
    let of = |treatment| find(rows, sender, treatment);
    let (none, coalesced) = (of(Treatment::None)?, of(Treatment::Coalesced)?);
    let split = of(Treatment::Split)?;
    let costs = [coalesced, split].map(|row| row.figures.cpu_s_per_gb.median);
    let detail = format!(
        "Over 20 ms {} without coalescing; {} with it; {} with splitting, which takes {:.2} CPU s/GB instead of {:.2} \
         ({:+.0} %).",
        pace(none),
        pace(coalesced),
        pace(split),
        costs[1],
        costs[0],
        100.0 * (costs[1] / costs[0] - 1.0)
    );
    let [base, with, other] = [none, coalesced, split].map(|row| row.figures.mbit_per_s.median);
    Some(Claim::new(id, Some(with / base.max(other)), detail))
}

/// Returns a phrase with the time to full rate and the total rate.
fn pace(row: &Row) -> String {
    let mbit_per_s = row.figures.mbit_per_s.median;
    format!("at 90 % of the link {}, {mbit_per_s:.0} Mbit/s in all", time_of(row))
}

/// Returns the time in milliseconds by which `one` came to full rate later than `other`, beyond the variation
/// between measurements; `None` if neither did.
fn later_ms(one: &Row, other: &Row) -> Option<f64> {
    match [one, other].map(|row| row.figures.always_full_ms()) {
        [Some(one), Some(other)] => {
            Some(one - (MOST_TIMES * other + ROUND_TRIP.as_secs_f64() * 1e3))
        }
        [None, Some(_)] => Some(NEVER_MS),
        [Some(_), None] => Some(-NEVER_MS),
        [None, None] => None,
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

/// Variation of the time to full rate between measurements, as a factor.
const MOST_TIMES: f64 = 1.1;
/// The time that stands for never: longer than any connection is watched.
const NEVER_MS: f64 = 60_000.0;

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
        of_split(rows).iter().map(Claim::holds).collect()
    }

    #[test]
    fn what_is_said_follows_from_the_rows() {
        assert_eq!(held(&rows(Some(310.0))), [Some(true); 5]);
        let late = [Some(true), Some(true), Some(true), Some(false), Some(true)];
        assert_eq!(held(&rows(Some(900.0))), late);
        assert_eq!(held(&rows(None)), late);
        assert_eq!(held(&rows(None)[..1]), [None; 5]);
        assert_eq!(held(&[]), [None; 5]);
    }

    #[test]
    fn a_linux_sender_that_gains_by_splitting_is_told() {
        let of = |treatment, mbit_per_s| {
            let sample = Sample { mbit_per_s, ..sample(500.0, Some(100.0)) };
            let figures = Figures::of(&[sample]).unwrap();
            Row { sender: Sender::Reno, network: Network::Delay, treatment, figures }
        };
        let rows = |coalesced| {
            [
                of(Treatment::None, 500.0),
                of(Treatment::Coalesced, coalesced),
                of(Treatment::Split, 500.0),
            ]
        };
        assert_eq!(held(&rows(490.0))[5], Some(true));
        assert_eq!(held(&rows(300.0))[5], Some(false));
        let text = of_split(&rows(490.0))[5].line();
        assert!(text.starts_with("reproduced    menon-acks.linux.reno "), "{text}");
        assert!(text.contains("2.00 CPU s/GB instead of 2.00 (+0 %)"), "{text}");
    }
}
