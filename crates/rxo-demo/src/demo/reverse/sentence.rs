//! Explains the figures of `rxo demo --reverse` in a few plain sentences.

use rxo_console::numbers::ratio;

use crate::sending::{Row, Way};
use crate::stats::share_of;

/// Returns sentences that compare the three ways of ACKs in one run. The sentences state only measured effects,
/// and also state if there is no gain.
pub(super) fn sentence(rows: &[Row]) -> String {
    let of = |way| rows.iter().find(|row| row.way == way);
    let (Some(kernel), Some(without), Some(with)) =
        (of(Way::KernelGro), of(Way::NoAggregation), of(Way::AckAggregate))
    else {
        return "Not every way was measured, so there is nothing to compare.".to_owned();
    };
    if rows.iter().any(|row| !row.hash_ok) {
        return "Bytes arrived that were not sent: the figures mean nothing until that is found."
            .to_owned();
    }
    format!(
        "With {} the peer sent {:.2} ACKs for each segment. {} A byte cost the sending host {} than \
         through rxo without aggregation, and {} than with the kernel alone, which leaves pure ACKs \
         as they are; the rate was {} theirs and {} theirs. {}",
        connections(with.connections),
        with.acks_per_segment.median,
        fewer(without, with),
        compared(with.cpu_s_per_gb.median, without.cpu_s_per_gb.median),
        compared(with.cpu_s_per_gb.median, kernel.cpu_s_per_gb.median),
        share_of(with.gbit_per_s.median, without.gbit_per_s.median),
        share_of(with.gbit_per_s.median, kernel.gbit_per_s.median),
        lost(with),
    )
}

/// Returns the factor by which ACK aggregation reduces the deliveries per segment: the deliveries in the row
/// `without` it, divided by the deliveries in the row `with` it.
pub(crate) fn times_fewer(without: &Row, with: &Row) -> f64 {
    let share = |row: &Row| ratio(row.ack_deliveries as f64, row.segments as f64);
    ratio(share(without), share(with))
}

fn fewer(without: &Row, with: &Row) -> String {
    let times = times_fewer(without, with);
    let acks = with.acks_per_delivery.median;
    if times >= TARGET {
        return format!(
            "Aggregation handed the host {acks:.1} of them at a time, {times:.0} times fewer \
             deliveries for the same data."
        );
    }
    format!(
        "Aggregation handed the host {acks:.1} of them at a time, {times:.1} times fewer deliveries \
         for the same data: short of the ten times that it is meant to reach with a peer that \
         acknowledges every segment or two."
    )
}

fn connections(number: usize) -> String {
    if number == 1 { "one connection".to_owned() } else { format!("{number} connections") }
}

/// Returns a phrase that compares the processor time `ours` with `theirs`.
fn compared(ours: f64, theirs: f64) -> String {
    let percent = 100.0 * (ratio(ours, theirs) - 1.0);
    match percent {
        ..-99.0 => "more than 99 % less".to_owned(),
        ..=0.0 => format!("{:.0} % less", -percent),
        _ => format!("{percent:.0} % more"),
    }
}

fn lost(with: &Row) -> String {
    match with.losses.ring_drops {
        0 => "No ACK was lost at the ring.".to_owned(),
        1 => "1 frame was lost at the ring.".to_owned(),
        many => format!("{many} frames were lost at the ring."),
    }
}

/// The factor by which ACK aggregation should reduce deliveries.
const TARGET: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::Losses;
    use crate::sending::{Sample, sample_for_tests as sample};

    fn row(way: Way, gbit_per_s: f64, cpu_s_per_gb: f64, deliveries: u64, ring: u64) -> Row {
        let losses = Losses { ring_drops: ring, ..Losses::default() };
        let sample = Sample { losses, ..sample(gbit_per_s, cpu_s_per_gb, deliveries) };
        Row::of(way, 1, &[sample]).unwrap()
    }

    fn rows(with: Row) -> Vec<Row> {
        let kernel = row(Way::KernelGro, 10.0, 0.5, 1_000, 0);
        vec![kernel, row(Way::NoAggregation, 8.0, 1.0, 1_000, 0), with]
    }

    #[test]
    fn a_gain_is_told_as_one() {
        assert_eq!(
            sentence(&rows(row(Way::AckAggregate, 8.0, 0.8, 40, 0))),
            "With one connection the peer sent 0.50 ACKs for each segment. Aggregation handed the \
             host 25.0 of them at a time, 25 times fewer deliveries for the same data. A byte cost \
             the sending host 20 % less than through rxo without aggregation, and 60 % more than \
             with the kernel alone, which leaves pure ACKs as they are; the rate was 100 % of theirs \
             and 80 % of theirs. No ACK was lost at the ring."
        );
    }

    #[test]
    fn what_falls_short_is_not_dressed_up() {
        let text = sentence(&rows(row(Way::AckAggregate, 4.0, 1.2, 250, 7)));
        for part in [
            "4.0 times fewer",
            "short of the ten times",
            "20 % more than through",
            "50 % of theirs and",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.ends_with("7 frames were lost at the ring."), "{text}");
    }

    #[test]
    fn a_way_that_got_hardly_any_time_makes_no_absurd_percentages() {
        let mut rows = rows(row(Way::AckAggregate, 3.024, 0.8, 40, 0));
        rows[1] = row(Way::NoAggregation, 0.3, 400.0, 1_000, 0);
        let text = sentence(&rows);
        assert!(text.contains("cost the sending host more than 99 % less than through"), "{text}");
        assert!(text.contains("the rate was 10.1 times theirs and 30 % of theirs"), "{text}");
        assert!(!text.contains("100 % less") && !text.contains("1008 %"), "{text}");
    }

    #[test]
    fn wrong_bytes_and_missing_ways_outweigh_every_figure() {
        let mut rows = rows(row(Way::AckAggregate, 4.0, 1.2, 250, 0));
        assert!(sentence(&rows[..2]).starts_with("Not every way"));
        rows[0].hash_ok = false;
        assert!(sentence(&rows).starts_with("Bytes arrived that were not sent"));
    }
}
