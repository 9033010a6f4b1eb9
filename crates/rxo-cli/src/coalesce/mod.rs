//! `rxo coalesce`: writes a capture as the host's stack would see it.

mod plan;
mod show;

use anyhow::{Error, Result};
use rxo_capture::WriteError;
use rxo_trace::rewrite::{Coalesced, Coalescer, RewriteError};
use serde::Serialize;

use self::plan::Plan;
use crate::captures::{OutputFile, Progress, Reading, Report, Step};
use crate::exit::{partial, usage};
use crate::flags::CoalesceFlags;
use crate::stop;

/// The summary as JSON.
#[derive(Debug, Serialize)]
struct Done<'a> {
    input: &'a str,
    output: &'a str,
    policy: &'a str,
    poll: String,
    #[serde(flatten)]
    figures: Coalesced,
    /// Why part of the capture was not read.
    partial: Option<String>,
}

/// Coalesces a capture into a file.
///
/// # Errors
/// If the plan is invalid, the capture cannot be read, the file cannot be written, or part of the
/// capture could not be read.
pub(crate) fn command(flags: &CoalesceFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let stop = stop::on_request()?;
    let (mut reading, mut step) = Reading::open(&plan.input, &stop)?;
    let (target, file) = OutputFile::create(&plan.output, &[plan.input.path()])?;
    let output = target.name().to_owned();
    let told = |error| told(error, &plan, &output);
    let progress = Progress::over(std::slice::from_ref(&plan.input));
    progress.begin(&plan.input);
    let mut coalescer = Coalescer::new(&reading.capture, file, plan.settings).map_err(told)?;
    while step == Step::More {
        coalescer.take(&reading.capture, &mut reading.records).map_err(told)?;
        progress.at(reading.capture.position());
        step = reading.next();
    }
    coalescer.take(&reading.capture, &mut reading.records).map_err(told)?;
    let finished = coalescer.finish(&reading.capture, step != Step::Over);
    let (file, figures) = finished.map_err(told)?;
    let report = target.complete(&file)?;
    progress.finish();
    let missing = if let Step::Partial(why) = step { Some(why) } else { None };
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

/// The error with the name of the file or flag that it is about.
fn told(error: RewriteError, plan: &Plan, output: &str) -> Error {
    match error {
        RewriteError::Config(error) => usage(format!("--set, --hold: {error}")),
        RewriteError::Write(WriteError::Io(error)) => {
            Error::from(error).context(format!("{output} cannot be written"))
        }
        RewriteError::Write(_) | RewriteError::NotForPcap(_) => {
            Error::from(error).context(output.to_owned())
        }
        _ => Error::from(error).context(plan.input.name().to_owned()),
    }
}
