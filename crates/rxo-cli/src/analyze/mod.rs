//! `rxo analyze`: what coalescing would do to the traffic in captures.
//!
//! The flags become a [`plan`]; the study of `rxo-trace` reads what it names; [`files`] adds the
//! projection and writes what goes into files. A capture that is
//! damaged, or a signal, ends the reading and not the command: what is known so far is printed,
//! marked partial.

mod files;
mod plan;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result};
use rxo_capture::CaptureError;
use rxo_console::shell;
use rxo_trace::report::Report;
use rxo_trace::study::{Ended, Study};
use rxo_trace::text::text;

use self::plan::Plan;
use crate::captures::{Input, Progress};
use crate::exit::{partial, usage};
use crate::flags::AnalyzeFlags;
use crate::{output, stop};

/// Reads the captures and prints the report.
///
/// # Errors
/// If the plan is invalid, no capture can be read, or not all of one could be read.
pub(crate) fn command(flags: &AnalyzeFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let study = Study::new(plan.settings.clone())
        .map_err(|error| usage(format!("--set, --sweep: {error}")))?;
    let stop = stop::on_request()?;
    let mut report = read(study, &plan.inputs, &stop)?;
    report.command = Some(shell::command());
    // Before anything is printed: the files must be written even if the reader of the text goes away.
    let written = files::write(&plan, &mut report);
    if plan.json {
        output::json_document(&report)?;
    } else {
        output::text(&text(&report))?;
    }
    written?;
    report.partial.map_or(Ok(()), |why| Err(partial(why)))
}

/// Reads all captures, until a signal.
fn read(mut study: Study, inputs: &[Input], stop: &std::sync::Arc<AtomicBool>) -> Result<Report> {
    let progress = Progress::over(inputs);
    let mut failed: Option<CaptureError> = None;
    let mut opened = 0;
    for input in inputs {
        progress.begin(input);
        match input.open(stop) {
            Ok(mut capture) => {
                opened += 1;
                let is_wanted = |position| {
                    progress.at(position);
                    !stop.load(Ordering::Relaxed)
                };
                if study.read(&mut capture, is_wanted) == Ended::Stopped {
                    break;
                }
            }
            Err(error) => {
                study.refuse_source(input.name(), &error.to_string());
                failed = failed.or(Some(error));
            }
        }
        progress.end(input);
    }
    progress.finish();
    if let (0, Some(error)) = (opened, failed) {
        return Err(Error::from(error));
    }
    let interrupted = stop
        .load(Ordering::Relaxed)
        .then(|| format!("interrupted after {} packets", crate::numbers::grouped(study.packets())));
    Ok(study.finish(interrupted))
}
