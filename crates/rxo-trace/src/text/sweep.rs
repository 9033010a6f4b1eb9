//! The results of a sweep as text: one setting as a list, two settings as a grid.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;

use super::units::time;
use crate::report::{Outcome, Sweep};
use crate::sweep::SweepAxis;

pub(super) fn text(sweep: &Sweep) -> String {
    match sweep.axes.as_slice() {
        [rows, columns] => grid(rows, columns, &sweep.outcomes),
        [axis] => list(axis, &sweep.outcomes),
        _ => String::new(),
    }
}

fn list(axis: &SweepAxis, outcomes: &[Outcome]) -> String {
    let head = [
        axis.key.as_str(),
        "eliminated",
        "of 10,000",
        "pkt/aggregate",
        "p99",
        "hold p50",
        "hold p99",
    ];
    let mut table = Table::new(&head);
    for (value, outcome) in axis.values.iter().zip(outcomes) {
        table.row([
            value.clone(),
            grouped(outcome.eliminated),
            format!("{:.0}", outcome.eliminated_per_10_000),
            format!("{:.1}", outcome.segments_per_aggregate.mean),
            outcome.segments_per_aggregate.p99.to_string(),
            time(outcome.hold_ns.p50),
            time(outcome.hold_ns.p99),
        ]);
    }
    format!("Sweep over {}\n\n{}", axis.key, table.render())
}

fn grid(rows: &SweepAxis, columns: &SweepAxis, outcomes: &[Outcome]) -> String {
    let corner = format!("{} \\ {}", rows.key, columns.key);
    let mut head = vec![corner.as_str()];
    head.extend(columns.values.iter().map(String::as_str));
    let mut table = Table::new(&head);
    for (value, outcomes) in rows.values.iter().zip(outcomes.chunks(columns.values.len().max(1))) {
        let gains = outcomes.iter().map(|outcome| format!("{:.0}", outcome.eliminated_per_10_000));
        table.row(std::iter::once(value.clone()).chain(gains));
    }
    format!(
        "Sweep over {} and {}: packets eliminated of 10,000\n\n{}",
        rows.key,
        columns.key,
        table.render()
    )
}
