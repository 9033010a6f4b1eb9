//! A row for each reason of each row in `settings.parquet`.

use super::settings;
use super::table::Table;
use crate::report::{ReasonCount, Report};

/// Bypasses and flushes, with the number of their row in `settings.parquet`.
pub(super) fn table(report: &Report) -> Table {
    let mut rows: Vec<(u64, &str, &ReasonCount)> = Vec::new();
    for (row, outcome) in (0..).zip(settings::all(report)) {
        rows.extend(outcome.bypassed.iter().map(|reason| (row, "bypass", reason)));
        rows.extend(outcome.flushed.iter().map(|reason| (row, "flush", reason)));
    }
    Table::default()
        .count("settings_row", rows.iter().map(|(row, ..)| *row))
        .text("kind", rows.iter().map(|(_, kind, _)| kind))
        .text("reason", rows.iter().map(|(.., reason)| &reason.reason))
        .count("times", rows.iter().map(|(.., reason)| reason.count))
        .number("share", rows.iter().map(|(.., reason)| reason.share))
}
