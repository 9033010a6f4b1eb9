//! `rxo analyze`: predicts the effect of coalescing on the traffic in captures.
//!
//! The flags become a [`plan`]. The study of `rxo-trace` reads the captures that the plan names, or watches an
//! interface ([`live`]). Alternatively, saved parts of studies are merged ([`saved`]). [`files`] adds the savings
//! projection and writes the report's files. A damaged capture, or a signal, ends only the reading: the command prints
//! the results so far, and marks them as partial.

mod files;
mod live;
mod plan;
mod saved;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result, bail};
use rxo_capture::{Capture, CaptureError};
use rxo_console::shell;
use rxo_trace::report::Report;
use rxo_trace::study::{Ended, Part, Settings, Slice, Study, StudyError, Terms, slices};
use rxo_trace::text::text;

use self::plan::{Plan, Work};
use crate::captures::{Input, Progress, skipped};
use crate::exit::{partial, usage};
use crate::flags::AnalyzeFlags;
use crate::{output, stop};

/// Reads the captures and prints the report.
///
/// # Errors
/// If the plan is invalid, no capture can be read, or a capture could not be read to its end.
pub(crate) fn command(flags: &AnalyzeFlags) -> Result<()> {
    let mut plan = Plan::from_flags(flags)?;
    let mut report = match plan.work.clone() {
        Work::Live { interface, time } => live::report(&mut plan, &interface, time)?,
        _ => counted(&plan)?,
    };
    report.command = Some(shell::command());
    report.notes.extend(skipped(&flags.files));
    // Written before anything is printed: a reader that goes away must not prevent the files.
    let written = files::write(&plan, &mut report);
    if plan.json {
        output::json_document(&report)?;
    } else {
        output::text(&text(&report))?;
    }
    written?;
    report.partial.map_or(Ok(()), |why| Err(partial(why)))
}

/// Returns the report on the captures or the saved parts of the plan. Saves the counted traffic if the plan has a
/// file for it.
fn counted(plan: &Plan) -> Result<Report> {
    let part = count(plan)?;
    if let Some(path) = &plan.save {
        saved::write(&part, path)?;
    }
    let Settings { costs, costs_from, top, .. } = plan.settings.clone();
    let mut report = part.report(&Terms { costs, costs_from, top });
    if matches!(plan.work, Work::Part { .. }) {
        // A part that was cut on purpose is not partial; only damage makes it partial.
        report.partial = part.damage();
    }
    Ok(report)
}

/// Begins a study with the settings of the plan.
fn study_of(plan: &Plan) -> Result<Study> {
    let settings = &plan.settings;
    Study::new(settings.clone()).map_err(|error| match error {
        StudyError::Filter(error) => {
            let text = settings.filter.as_deref().unwrap_or_default();
            usage(format!("--flow \"{text}\": {error}"))
        }
        error => usage(format!("--set, --sweep: {error}")),
    })
}

/// Analyzes the captures of the plan, or merges its saved parts. Returns the counted traffic.
fn count(plan: &Plan) -> Result<Part> {
    let stop = stop::on_request()?;
    match &plan.work {
        Work::Merge(paths) => saved::merge(paths),
        Work::Live { .. } => bail!("a live interface has no parts"),
        Work::Captures(inputs) => {
            let opened: Vec<Opened<'_>> = inputs.iter().map(Opened::Whole).collect();
            let read = read(study_of(plan)?, &opened, &stop);
            match read.none_opened {
                Some(error) => Err(Error::from(error)),
                None => Ok(read.study.into_part(None, read.interrupted)),
            }
        }
        Work::Part { files, number, parts } => {
            let study = study_of(plan)?;
            let (span, slices) = slices(files, *number, *parts)?;
            let opened: Vec<Opened<'_>> = slices.iter().map(Opened::Slice).collect();
            // A part may have no records: of a small capture, or of files that cannot be read, because other parts may have
            // the rest.
            let read = read(study, &opened, &stop);
            Ok(read.study.into_part(Some(span), read.interrupted))
        }
    }
}

/// An opened input of the analysis: a whole capture, or a part of one.
enum Opened<'a> {
    Whole(&'a Input),
    Slice(&'a Slice),
}

impl Opened<'_> {
    fn input(&self) -> Input {
        match self {
            Self::Whole(input) => (*input).clone(),
            Self::Slice(slice) => Input::new(&slice.path),
        }
    }

    fn open(&self, stop: &Arc<AtomicBool>) -> Result<Capture, CaptureError> {
        match self {
            Self::Whole(input) => input.open(stop),
            Self::Slice(slice) => slice.open(),
        }
    }
}

/// The result of reading the captures, completely or until reading was interrupted.
struct Read {
    study: Study,
    /// The message about the signal that ended the reading; `None` if no signal arrived.
    interrupted: Option<String>,
    /// The first error if no capture could be opened; `None` if at least one could be opened, or there are no
    /// captures.
    none_opened: Option<CaptureError>,
}

/// Reads all captures until they end or a signal arrives.
fn read(mut study: Study, captures: &[Opened<'_>], stop: &Arc<AtomicBool>) -> Read {
    let inputs: Vec<Input> = captures.iter().map(Opened::input).collect();
    let progress = Progress::over(&inputs);
    let mut failed: Option<CaptureError> = None;
    let mut opened = 0;
    for (capture, input) in captures.iter().zip(&inputs) {
        progress.begin(input);
        match capture.open(stop) {
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
    let interrupted = stop
        .load(Ordering::Relaxed)
        .then(|| format!("interrupted after {} packets", crate::numbers::grouped(study.packets())));
    Read { study, interrupted, none_opened: failed.filter(|_| opened == 0) }
}
