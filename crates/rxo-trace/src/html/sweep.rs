//! The page section on the sweep: results of other settings, as a line for one setting or a heat map for two.

use super::table::{Cell, Drawing, Part, Section, Table};
use crate::figure::{Axis, Figure, HeatMap, Series, number};
use crate::report::{Outcome, Sweep};
use crate::sweep::SweepAxis;
use crate::words::{count, duration};

/// Returns the section on the sweep, a figure with its table; `None` if there was no sweep.
pub(super) fn section(sweep: Option<&Sweep>) -> Option<Section> {
    let sweep = sweep.filter(|sweep| !sweep.axes.is_empty())?;
    Some(Section {
        id: "sweep",
        title: "Other settings",
        text: vec![sentence(sweep)],
        code: Vec::new(),
        drawings: drawings(sweep),
        tables: vec![table(sweep)],
    })
}

fn sentence(sweep: &Sweep) -> String {
    let keys: Vec<&str> = sweep.axes.iter().map(|axis| axis.key.as_str()).collect();
    let most = best(sweep).map_or(String::new(), |(values, outcome)| {
        format!(
            " The most, {} of 10,000 packets, are eliminated with {values}.",
            number(outcome.eliminated_per_10_000)
        )
    });
    format!(
        "The same packets at the same times, with other values of {}.{most}",
        keys.join(" and ")
    )
}

/// Returns the first outcome that eliminates the most packets, preceded by the values of its settings as a
/// string; `None` if there are no outcomes.
fn best(sweep: &Sweep) -> Option<(String, &Outcome)> {
    let most = |outcome: &Outcome| outcome.eliminated;
    let (place, outcome) =
        sweep.outcomes.iter().enumerate().rev().max_by_key(|(_, outcome)| most(outcome))?;
    Some((values_at(sweep, place).join(", "), outcome))
}

/// Returns the values of the outcome at index `place`, as `key=value`.
fn values_at(sweep: &Sweep, place: usize) -> Vec<String> {
    let axes = sweep.axes.iter().zip(sweep.places_at(place));
    let value = |(axis, at): (&SweepAxis, usize)| {
        format!("{}={}", axis.key, axis.values.get(at).map_or("", String::as_str))
    };
    axes.map(value).collect()
}

fn drawings(sweep: &Sweep) -> Vec<Drawing> {
    match sweep.axes.as_slice() {
        [_] => vec![
            Drawing::of(&line(sweep, ELIMINATED, |outcome| outcome.eliminated_per_10_000)),
            Drawing::of(&line(sweep, "Mean segments per aggregate", |outcome| {
                outcome.segments_per_aggregate.mean
            })),
        ],
        [rows, columns] => {
            let values = sweep.outcomes.iter().map(|outcome| outcome.eliminated_per_10_000);
            vec![Drawing::of(&HeatMap {
                title: ELIMINATED.to_owned(),
                description: sentence(sweep),
                x_label: columns.key.clone(),
                columns: columns.values.clone(),
                y_label: rows.key.clone(),
                rows: rows.values.clone(),
                values: values.collect(),
            })]
        }
        _ => Vec::new(),
    }
}

fn line(sweep: &Sweep, title: &str, value: fn(&Outcome) -> f64) -> Figure {
    let axis = &sweep.axes[0];
    Figure::new(
        format!("{title} over {}", axis.key),
        Axis::categories(&axis.key, &axis.values),
        Axis::linear(title.to_lowercase()),
    )
    .with(Series::over_categories(title, sweep.outcomes.iter().map(value)))
    .describe(sentence(sweep))
}

fn table(sweep: &Sweep) -> Part {
    let rows = sweep.outcomes.iter().enumerate().map(|(place, outcome)| {
        let hold = |ns: u64| Cell::number(duration(ns as f64), ns as f64);
        vec![
            Cell::text(values_at(sweep, place).join("  ")),
            Cell::number(count(outcome.deliveries), outcome.deliveries as f64),
            Cell::number(count(outcome.eliminated), outcome.eliminated as f64),
            Cell::number(number(outcome.eliminated_per_10_000), outcome.eliminated_per_10_000),
            Cell::number(
                number(outcome.segments_per_aggregate.mean),
                outcome.segments_per_aggregate.mean,
            ),
            hold(outcome.hold_ns.p50),
            hold(outcome.hold_ns.p99),
        ]
    });
    let heads = [
        "settings",
        "#deliveries",
        "#eliminated",
        "#of 10,000",
        "#segments per aggregate",
        "#held, median",
        "#held, 99 %",
    ];
    Table::new(&heads, rows.collect()).behind("Every setting as a table")
}

const ELIMINATED: &str = "Packets eliminated of 10,000";
