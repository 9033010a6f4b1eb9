//! The table of captures: a row for each capture.

use super::Table;
use super::columns::Columns;
use crate::report::Report;

/// Returns a table with a row for each capture.
///
/// # Errors
/// The errors of [`flows()`](super::flows()).
pub fn sources(report: &Report) -> Table {
    let all = &report.sources;
    Columns::default()
        .text("file", all.iter().map(|source| &source.name))
        .text("format", all.iter().map(|source| &source.format))
        .count("packets", all.iter().map(|source| source.packets))
        .instant("started_at", all.iter().map(|source| source.started_at_ns))
        .count("duration_ns", all.iter().map(|source| source.duration_ns))
        .some_text("damage", all.iter().map(|source| source.damage.as_deref()))
        .finish()
}
