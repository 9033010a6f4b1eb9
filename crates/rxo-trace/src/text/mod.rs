//! The report as text. Every number comes from the report; this module only formats it.

mod advice;
mod comparison;
mod decision;
mod flows;
mod live;
mod projection;
mod reasons;
mod summary;
mod sweep;
mod units;

pub use comparison::comparison;
pub(crate) use live::{today, watched};
pub(crate) use units::time;

use crate::report::Report;

/// Formats the whole report as text, with tables and without a line end after the last line. Allocates.
///
/// # Examples
/// ```
/// use rxo_trace::report::Report;
///
/// let report = Report { partial: Some("interrupted".into()), ..Report::default() };
/// assert!(rxo_trace::text::text(&report).contains("PARTIAL: interrupted"));
/// ```
#[must_use]
pub fn text(report: &Report) -> String {
    let mut parts = vec![decision::text(report), summary::text(report)];
    parts.extend(report.live.as_ref().map(live::text));
    parts.extend(reasons::text(&report.outcome));
    parts.extend(flows::text(report));
    parts.extend(report.sweep.as_ref().map(sweep::text));
    parts.extend(report.advice.as_ref().and_then(advice::text));
    parts.extend(report.projection.as_ref().map(projection::text));
    parts.extend(notes(report));
    parts.join("\n\n")
}

fn notes(report: &Report) -> Option<String> {
    let partial = report.partial.iter().map(|why| format!("PARTIAL: {why}"));
    let lines: Vec<String> =
        partial.chain(report.notes.iter().cloned()).map(|note| format!("* {note}")).collect();
    (!lines.is_empty()).then(|| format!("Notes\n\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests;
