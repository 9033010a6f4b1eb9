//! Writes the files of a report: the Parquet tables and the HTML page. Adds the savings projection to the
//! report first.

use std::path::Path;

use anyhow::{Context, Result};
use rxo_trace::html;
use rxo_trace::projection::Projection;
use rxo_trace::report::Report;

use super::plan::Plan;

/// Adds the savings projection to `report`, writes the Parquet tables of all flows, truncates the report to the flows
/// that the plan lists, and writes the HTML page.
///
/// # Errors
/// If a file cannot be written. The report is complete even then.
pub(super) fn write(plan: &Plan, report: &mut Report) -> Result<()> {
    report.projection = plan.costs.as_ref().and_then(|given| {
        Projection::of(&given.costs, &given.from, &report.traffic, &report.outcome)
    });
    let tables = plan.parquet.as_deref().map_or(Ok(()), |folder| tables(report, folder));
    report.flows.truncate(plan.listed_flows);
    let page = plan.html.as_deref().map_or(Ok(()), |path| {
        html::write(report, path)
            .with_context(|| format!("--html {}: the page was not written", path.display()))
    });
    tables.and(page)
}

#[cfg(feature = "parquet")]
fn tables(report: &Report, folder: &Path) -> Result<()> {
    rxo_trace::parquet::write(report, folder).context("the Parquet tables were not written")
}

/// Replaces the Parquet writer in a build without the feature `parquet`. Never called, because the plan refuses
/// `--parquet` in such a build.
#[cfg(not(feature = "parquet"))]
fn tables(_: &Report, folder: &Path) -> Result<()> {
    super::plan::can_write_parquet(folder)
}
