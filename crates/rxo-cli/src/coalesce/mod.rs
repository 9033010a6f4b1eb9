//! `rxo coalesce`: a capture as the host's stack would see it.

mod plan;
mod show;

use anyhow::{Error, Result};
use rxo_device::capture::WriteError;
use rxo_trace::rewrite::{Coalesced, Coalescer, RewriteError};
use serde::Serialize;

use self::plan::Plan;
use crate::captures::{OutputFile, Progress, Reading, Step};
use crate::exit::{partial, usage};
use crate::flags::CoalesceFlags;
use crate::{output, stop};

/// What was done, for a program.
#[derive(Debug, Serialize)]
struct Done<'a> {
    input: &'a str,
    output: &'a str,
    policy: &'a str,
    poll: String,
    #[serde(flatten)]
    figures: Coalesced,
    /// Why not all of the capture was read.
    partial: Option<String>,
}

/// Coalesces a capture into a file.
///
/// # Errors
/// When the plan cannot be, the capture cannot be read or the file not be written, or not all of
/// the capture could be read.
pub(crate) fn command(flags: &CoalesceFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let stop = stop::on_request()?;
    let (mut reading, mut step) = Reading::open(&plan.input, &stop)?;
    let (target, file) = OutputFile::create(&plan.output, &[&plan.input])?;
    let told = |error| told(error, &plan);
    let progress = Progress::over(std::slice::from_ref(&plan.input));
    progress.begin(&plan.input);
    let mut coalescer = Coalescer::new(&reading.capture, file, plan.settings).map_err(told)?;
    while step == Step::More {
        coalescer.take(reading.capture.interfaces(), &mut reading.records).map_err(told)?;
        progress.at(reading.capture.position());
        step = reading.next();
    }
    coalescer.take(reading.capture.interfaces(), &mut reading.records).map_err(told)?;
    let finished = coalescer.finish(&reading.capture, step != Step::Over);
    let (file, figures) = finished.map_err(told)?;
    target.complete(&file)?;
    progress.finish();
    let missing = if let Step::Partial(why) = step { Some(why) } else { None };
    print(&plan, figures, missing.clone())?;
    missing.map_or(Ok(()), |why| Err(partial(why)))
}

fn print(plan: &Plan, figures: Coalesced, partial: Option<String>) -> Result<()> {
    if !plan.json {
        return output::text(&show::text(plan, &figures));
    }
    let point = &plan.settings.point;
    output::json_document(&Done {
        input: plan.input.name(),
        output: &plan.output,
        policy: point.policy.name,
        poll: point.poll.to_string(),
        figures,
        partial,
    })
}

/// The error, with the name of what it is about.
fn told(error: RewriteError, plan: &Plan) -> Error {
    match error {
        RewriteError::Config(error) => usage(format!("--set, --hold: {error}")),
        RewriteError::Write(WriteError::Io(error)) => {
            Error::from(error).context(format!("{} cannot be written", plan.output))
        }
        RewriteError::Write(_) | RewriteError::NotForPcap(_) => {
            Error::from(error).context(plan.output.clone())
        }
        _ => Error::from(error).context(plan.input.name().to_owned()),
    }
}
