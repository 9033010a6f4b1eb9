//! `rxo coalesce`: writes a capture as the host's stack would see it.

mod plan;
mod show;

use anyhow::Result;
use rxo_console::output_file::Report;
use rxo_trace::rewrite::{Coalesced, Coalescer};
use serde::Serialize;

use self::plan::Plan;
use crate::captures::Rewriting;
use crate::exit::partial;
use crate::flags::CoalesceFlags;

/// The summary of `rxo coalesce` as JSON.
#[derive(Debug, Serialize)]
struct Done<'a> {
    input: &'a str,
    output: &'a str,
    policy: &'a str,
    poll: String,
    #[serde(flatten)]
    figures: Coalesced,
    /// The reason why part of the capture was not read; `None` if all of the capture was read.
    partial: Option<String>,
}

/// Coalesces a capture into a file, and prints the summary.
///
/// # Errors
/// If the plan is invalid, the capture cannot be read, the file cannot be written, or part of the
/// capture could not be read.
pub(crate) fn command(flags: &CoalesceFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let (mut rewriting, mut file) = Rewriting::begin(&plan.input, &plan.output, false)?;
    let coalescer = Coalescer::new(rewriting.capture(), &mut file, plan.settings);
    let mut coalescer = coalescer.map_err(|error| rewriting.with_name(error))?;
    rewriting.read(|capture, records| coalescer.take(capture, records))?;
    let missing = rewriting.missing();
    let finished = coalescer.finish(rewriting.capture(), missing.is_some());
    let figures = finished.map_err(|error| rewriting.with_name(error))?;
    let output = rewriting.output();
    let report = rewriting.complete(&file)?;
    print(report, &plan, &output, figures, missing.clone())?;
    missing.map_or(Ok(()), |why| Err(partial(why)))
}

fn print(
    report: Report,
    plan: &Plan,
    output: &str,
    figures: Coalesced,
    partial: Option<String>,
) -> Result<()> {
    if !plan.json {
        return report.text(&show::text(plan, output, &figures));
    }
    let point = &plan.settings.point;
    report.json(&Done {
        input: plan.input.name(),
        output,
        policy: point.policy.name,
        poll: point.poll.to_string(),
        figures,
        partial,
    })
}
