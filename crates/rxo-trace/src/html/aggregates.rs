//! The page sections on the size of aggregates, and on the time for which segments were held.

use super::table::{Cell, Drawing, Section, Table};
use crate::figure::{Axis, Figure, Guide, Series, number};
use crate::report::{Distribution, Outcome};
use crate::words::{count, duration, percent, plural};

/// Returns the section on segments and bytes of aggregates; `None` if there are no aggregates.
pub(super) fn section(outcome: &Outcome) -> Option<Section> {
    let (segments, bytes) = (&outcome.segments_per_aggregate, &outcome.bytes_per_aggregate);
    (outcome.aggregates > 0).then(|| Section {
        id: "aggregates",
        title: "Segments per aggregate",
        text: vec![sentence(outcome)],
        code: Vec::new(),
        drawings: drawings(&[
            ShownDistribution {
                what: segments,
                title: "Aggregates with at most so many segments",
                whose: "of all aggregates",
                unit: "segments",
                one: 1.0,
                is_whole: true,
            },
            ShownDistribution {
                what: bytes,
                title: "Aggregates with at most so much payload",
                whose: "of all aggregates",
                unit: "kB of payload",
                one: 1_000.0,
                is_whole: false,
            },
        ]),
        tables: vec![table(&[("segments", segments), ("payload bytes", bytes)], number)],
    })
}

/// Returns the section on hold times; `None` if nothing was coalesced.
pub(super) fn hold_section(outcome: &Outcome) -> Option<Section> {
    let hold = &outcome.hold_ns;
    if outcome.aggregates == 0 || hold.count == 0 {
        return None;
    }
    let (unit, one) = unit_of(hold.max);
    let text = format!(
        "Coalescing delays a segment until its aggregate is delivered. Half of the first \
             segments waited at most {}, 99 % at most {}, none longer than {}.",
        duration(hold.p50 as f64),
        duration(hold.p99 as f64),
        duration(hold.max as f64)
    );
    Some(Section {
        id: "hold",
        title: "Hold time",
        text: vec![text],
        code: Vec::new(),
        drawings: drawings(&[ShownDistribution {
            what: hold,
            title: "First segments that waited at most so long",
            whose: "of all first segments",
            unit,
            one,
            is_whole: false,
        }]),
        tables: vec![table(&[("hold time", hold)], duration)],
    })
}

fn sentence(outcome: &Outcome) -> String {
    format!(
        "{} carry {}, {} of all packets.",
        plural(outcome.aggregates, "aggregate"),
        plural(outcome.aggregated_segments, "segment"),
        percent(outcome.aggregated_segments as f64 / outcome.packets.max(1) as f64)
    )
}

/// A distribution, with the title, labels and unit of its figure.
struct ShownDistribution<'a> {
    what: &'a Distribution,
    title: &'static str,
    /// The quantity whose shares the figure shows, such as "of the aggregates".
    whose: &'static str,
    unit: &'static str,
    /// The number by which values are divided to convert them to the unit of the x axis.
    one: f64,
    /// `true` if all values are whole numbers of this unit.
    is_whole: bool,
}

fn drawings(all: &[ShownDistribution<'_>]) -> Vec<Drawing> {
    let some = all.iter().filter(|shown| shown.what.count > 0);
    some.map(|shown| Drawing::of(&figure(shown))).collect()
}

/// Returns the figure of a cumulative distribution: for each value, the share of values up to it. The line is
/// horizontal between two values that occur.
fn figure(
    &ShownDistribution { what, title, whose, unit, one, is_whole }: &ShownDistribution<'_>,
) -> Figure {
    let points = risers(what).into_iter().map(|(value, share)| (value as f64 / one, share));
    let (median, most) = (what.p50 as f64 / one, what.max as f64 / one);
    let x = Axis { is_whole: is_whole && most > 1.0, ..Axis::linear(unit).between(0.0, most) };
    Figure::new(title, x, Axis::share(whose).between(0.0, 1.0))
        .with(Series::steps(title, points))
        .guide(Guide::X(median, format!("median {}", number(median))))
        .describe(format!(
            "Half have at most {} {unit}, 99 % at most {}, the largest has {}.",
            number(median),
            number(what.p99 as f64 / one),
            number(most)
        ))
}

/// Returns the values in ascending order. Each value has a share: the largest known share of all values that do
/// not exceed this value.
fn risers(what: &Distribution) -> Vec<(u64, f64)> {
    let steps = what.every_5_percent.iter().enumerate();
    let steps = steps.map(|(step, &value)| (value, step as f64 / 20.0));
    // The longest values matter most, and the 5 % steps have nothing between 95 % and 100 %.
    let mut points: Vec<(u64, f64)> = steps.chain([(what.p99, 0.99)]).collect();
    points.sort_by(|left, right| left.1.total_cmp(&right.1));
    let first = points.first().copied();
    // Several shares at one value become one step, up to the largest share.
    points.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            kept.1 = later.1;
        }
        is_same
    });
    first.into_iter().chain(points).collect()
}

/// Returns the unit in which a time of `ns` nanoseconds is easy to read.
const fn unit_of(ns: u64) -> (&'static str, f64) {
    match ns {
        0..2_000 => ("ns", 1.0),
        2_000..2_000_000 => ("µs", 1e3),
        2_000_000..2_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    }
}

fn table(all: &[(&str, &Distribution)], value: fn(f64) -> String) -> super::table::Part {
    let rows = all.iter().map(|(name, distribution)| {
        let cell = |number: f64| Cell::number(value(number), number);
        vec![
            Cell::text(*name),
            Cell::number(count(distribution.count), distribution.count as f64),
            cell(distribution.mean),
            cell(distribution.p50 as f64),
            cell(distribution.p99 as f64),
            cell(distribution.max as f64),
        ]
    });
    let heads = ["", "#counted", "#mean", "#median", "#99 %", "#largest"];
    Table::new(&heads, rows.collect()).behind("Mean, median, 99 % and largest as a table")
}
