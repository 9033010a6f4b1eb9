//! The table of captures: a row for each capture.

use super::Table;
use super::columns::Columns;
use crate::report::Report;

/// Returns the table of the report's captures, in the report's order.
pub(super) fn table(report: &Report) -> Table {
    let sources = &report.sources;
    Columns::default()
        .text("file", sources.iter().map(|source| &source.name))
        .text("format", sources.iter().map(|source| &source.format))
        .count("packets", sources.iter().map(|source| source.packets))
        .instant("started_at", sources.iter().map(|source| source.started_at_ns))
        .count("duration_ns", sources.iter().map(|source| source.duration_ns))
        .some_text("damage", sources.iter().map(|source| source.damage.as_deref()))
        .finish()
}
