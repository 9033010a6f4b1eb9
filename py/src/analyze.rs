//! `rxo.analyze`: reads captures and counts their traffic.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rxo_capture::Position;
use rxo_trace::study::{self, Ended, MAX_FLOWS, Part, Point, Settings, Span, StudyError};

use crate::errors::{unreadable, usage, warn_partial};
use crate::inputs::{Input, Raised};
use crate::numbers;
use crate::rules::{self, Texts};
use crate::signals::Signals;
use crate::study::Study;

/// Predicts the effect of coalescing on the traffic in captures. See `rxo.analyze`.
#[pyfunction]
#[pyo3(signature = (
    captures, *, poll, policy, settings, sweep, flow, checksum, dedup, costs, advise, part, place, progress
))]
#[expect(
    clippy::too_many_arguments,
    reason = "keywords, whose defaults stand in the Python package"
)]
pub(crate) fn analyze(
    py: Python<'_>,
    captures: &Bound<'_, PyAny>,
    poll: Texts,
    policy: &str,
    settings: Option<&Bound<'_, PyDict>>,
    sweep: Texts,
    flow: Option<String>,
    checksum: &str,
    dedup: bool,
    costs: Option<&Bound<'_, PyAny>>,
    advise: bool,
    #[pyo3(from_py_with = numbers::part)] part: Option<(i64, i64)>,
    #[pyo3(from_py_with = numbers::place)] place: Option<(u64, i64, i64)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Study> {
    let (poll, polls) = rules::polls(poll.into_vec())?;
    let chosen = Point { policy: rules::policy(policy, settings)?, poll };
    let settings = Settings {
        sweep: rules::sweep(&chosen, polls, sweep.into_vec())?,
        advise,
        checksums: rules::checksums(checksum)?,
        filter: flow,
        dedup,
        top: MAX_FLOWS,
        ..Settings::new(chosen)
    };
    if let Some(name) = settings.host_name().filter(|_| part.is_some() || place.is_some()) {
        return Err(usage(format!(
            "flow: {name} may be another address on another machine, so a part cannot have it; write the address"
        )));
    }
    let costs = costs.map(rules::costs).transpose()?;
    let raised = Raised::default();
    let inputs = Input::all(captures, &raised)?;
    let (span, inputs) = match (part, place) {
        (Some(_), Some(_)) => return Err(usage("part, place: give only one of them")),
        (Some(part), None) => {
            let (span, slices) = slices_of(&inputs, part)?;
            (Some(span), slices)
        }
        (None, place) => (place.map(span_at).transpose()?, inputs),
    };
    let signals = Signals::new(progress);
    let part = py.detach(|| read(settings, inputs, span, (&raised, signals)))?;
    if let Some(why) = part.damage() {
        warn_partial(py, &why)?;
    }
    Ok(Study::of(part, costs))
}

/// Returns the place of part `number` of `parts` of these files, and the inputs that the part reads.
///
/// # Errors
/// If an input is not a path, a file cannot be read, or there is no such part.
fn slices_of(inputs: &[Input], (number, parts): (i64, i64)) -> PyResult<(Span, Vec<Input>)> {
    let invalid = || numbers::bad_part(format_args!("({number}, {parts})"));
    let (number, parts) = number_of(number.saturating_sub(1), parts).ok_or_else(invalid)?;
    let paths = inputs.iter().map(|input| match input {
        Input::Path(path) => Ok(path.clone()),
        Input::Slice(_) | Input::Bytes(_) | Input::File(_) => {
            Err(usage("part: only files that are given by path can be cut"))
        }
    });
    let paths = paths.collect::<PyResult<Vec<PathBuf>>>()?;
    let (span, slices) =
        study::slices(&paths, number + 1, parts).map_err(|error| unreadable(&error))?;
    Ok((span, slices.into_iter().map(Input::Slice).collect()))
}

/// Returns the place of a capture that is one whole file of a series.
///
/// # Errors
/// If there is no such place.
fn span_at((series, number, count): (u64, i64, i64)) -> PyResult<Span> {
    let (file, files) = number_of(number, count)
        .ok_or_else(|| numbers::bad_place(format_args!("({series}, {number}, {count})")))?;
    Ok(Span { series, from: (file, 0), to: (file + 1, 0), is_last: file + 1 == files })
}

/// Returns a number from 0, and the count that it is below; `None` if it is not.
fn number_of(number: i64, count: i64) -> Option<(u32, u32)> {
    let (number, count) = (number.try_into().ok()?, count.try_into().ok()?);
    (number < count).then_some((number, count))
}

/// Reads all captures. If they are a part of a series, those that cannot be opened have no packets, and the part has the
/// reason, because other parts may have the rest. So it is with an `OSError` of an open file.
///
/// # Errors
/// If the settings are invalid, no capture of the whole series can be opened, a signal arrived, or an open file
/// raised an exception.
fn read(
    settings: Settings,
    inputs: Vec<Input>,
    span: Option<Span>,
    (raised, mut signals): (&Raised, Signals),
) -> PyResult<Part> {
    let filter = settings.filter.clone().unwrap_or_default();
    let mut study = study::Study::new(settings).map_err(|error| match error {
        StudyError::Filter(error) => usage(format!("flow \"{filter}\": {error}")),
        error => usage(error.to_string()),
    })?;
    let mut failed = None;
    let (mut opened, mut read_bytes) = (0, 0);
    for input in inputs {
        let name = input.name();
        match input.open() {
            Ok(mut capture) => {
                opened += 1;
                let is_wanted =
                    |position: Position| signals.go_on_at(read_bytes + position.file_bytes_read);
                if study.read(&mut capture, is_wanted) == Ended::Stopped {
                    break;
                }
                read_bytes += capture.position().file_bytes_read;
            }
            Err(error) => {
                study.refuse_source(&name, &error.to_string());
                failed = failed.or(Some(error));
            }
        }
        if span.is_some() {
            raised.forget_os_error();
        }
        raised.result()?;
    }
    signals.result()?;
    match failed {
        Some(error) if opened == 0 && span.is_none() => Err(unreadable(&error)),
        _ => Ok(study.into_part(span, None)),
    }
}
