//! `rxo.coalesce`, `rxo.expand` and `rxo.verify`. Each returns its figures as JSON, from which the package
//! creates an object.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rxo_capture::{Batches, LinkType, Step, WriteError};
use rxo_console::files::Unfinished;
use rxo_trace::rewrite::{Coalescer, Expander, FileFormat, RewriteError, Settings};
use rxo_trace::study::Point;
use rxo_trace::verify::{Comparison, Limits, Side};
use serde::Serialize;

use crate::errors::{internal, of_file, unreadable, unwritable, usage, warn_partial};
use crate::inputs::{Input, Raised};
use crate::numbers;
use crate::rules;
use crate::signals::Signals;

/// Writes a capture as the host's stack would see it. See `rxo.coalesce`.
#[pyfunction]
#[pyo3(signature = (input, output, *, poll, policy, settings, checksum))]
pub(crate) fn coalesce(
    py: Python<'_>,
    input: &Bound<'_, PyAny>,
    output: PathBuf,
    poll: &str,
    policy: &str,
    settings: Option<&Bound<'_, PyDict>>,
    checksum: &str,
) -> PyResult<String> {
    let (poll, _) = rules::polls(vec![poll.to_owned()])?;
    let point = Point { policy: rules::policy(policy, settings)?, poll };
    let seed = RandomState::new().hash_one(0);
    let settings = Settings { point, checksums: rules::checksums(checksum)?, seed };
    let raised = Raised::default();
    let input = Input::one(input, &raised)?;
    finish(py, move || {
        let mut reading = Reading::open(input, raised)?;
        let (unfinished, mut file) = create(&output, &reading)?;
        let blame = |error| blame(error, &reading.name, &output);
        let writer = Coalescer::new(&reading.batches.capture, &mut file, settings);
        let mut coalescer = writer.map_err(blame)?;
        loop {
            let Batches { capture, records, .. } = &mut reading.batches;
            let taken = coalescer.take(capture, records);
            taken.map_err(|error| self::blame(error, &reading.name, &output))?;
            if !reading.go_on()? {
                break;
            }
        }
        let partial = reading.partial();
        let finished = coalescer.finish(&reading.batches.capture, partial.is_some());
        let figures = finished.map_err(|error| self::blame(error, &reading.name, &output))?;
        complete(unfinished, &file, &output)?;
        json(&figures, partial)
    })
}

/// Restores the original of a coalesced capture. See `rxo.expand`.
#[pyfunction]
pub(crate) fn expand(
    py: Python<'_>,
    input: &Bound<'_, PyAny>,
    output: PathBuf,
) -> PyResult<String> {
    let raised = Raised::default();
    let input = Input::one(input, &raised)?;
    finish(py, move || {
        let mut reading = Reading::open(input, raised)?;
        let (unfinished, mut file) = create(&output, &reading)?;
        let format = format(&output);
        let writer = Expander::new(&reading.batches.capture, &mut file, format);
        let mut expander = writer.map_err(|error| blame(error, &reading.name, &output))?;
        loop {
            let taken = expander.take(&mut reading.batches.records);
            taken.map_err(|error| blame(error, &reading.name, &output))?;
            if !reading.go_on()? {
                break;
            }
        }
        let partial = reading.partial();
        let finished = match &reading.step {
            Step::Damaged(error) => expander.finish_partial(Some(error)),
            _ => expander.finish(),
        };
        let figures = finished.map_err(|error| blame(error, &reading.name, &output))?;
        complete(unfinished, &file, &output)?;
        json(&figures, partial)
    })
}

/// Compares the streams of two captures, flow by flow. See `rxo.verify`.
#[pyfunction]
#[pyo3(signature = (a, b, *, window_mb))]
pub(crate) fn verify(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = numbers::window_mb)] window_mb: usize,
) -> PyResult<String> {
    let limits = Limits { waiting_bytes: window_mb * 1_000_000, ..Limits::default() };
    let raised = Raised::default();
    let inputs = [Input::one(a, &raised)?, Input::one(b, &raised)?];
    finish(py, move || {
        let [a, b] = inputs;
        let sides = [Reading::open(a, raised.clone())?, Reading::open(b, raised)?];
        compare(Comparison::new(limits), sides)
    })
}

/// Reads both captures side by side.
fn compare(mut comparison: Comparison, mut sides: [Reading; 2]) -> PyResult<Done> {
    while let Some(side) = comparison.next_side() {
        let reading = &mut sides[usize::from(side == Side::B)];
        let Batches { capture, records, .. } = &mut reading.batches;
        let interfaces = capture.interfaces();
        for record in records.drain(..) {
            let interface = interfaces.get(record.interface as usize);
            let link = interface.map_or(LinkType(u16::MAX), |interface| interface.link);
            comparison.push(side, &record, link);
        }
        if !reading.go_on()? {
            match reading.step {
                Step::Over => comparison.end(side),
                _ => comparison.cut(side),
            }
        }
    }
    let partial = sides.iter().find_map(Reading::partial);
    json(&comparison.finish(), partial)
}

/// The figures as JSON, and the reason why they are incomplete; `None` if they are complete.
type Done = (String, Option<String>);

/// Runs `work` without holding the interpreter's lock, and warns if its result is incomplete.
fn finish(py: Python<'_>, work: impl FnOnce() -> PyResult<Done> + Send) -> PyResult<String> {
    let (figures, partial) = py.detach(work)?;
    if let Some(why) = partial {
        warn_partial(py, &why)?;
    }
    Ok(figures)
}

/// A capture that is being read.
struct Reading {
    name: String,
    /// The path of the file without links; `None` if it has none.
    file: Option<PathBuf>,
    batches: Batches,
    step: Step,
    stop: Arc<AtomicBool>,
    signals: Signals,
    raised: Raised,
}

impl Reading {
    /// Opens the capture and reads the first batch.
    fn open(input: Input, raised: Raised) -> PyResult<Self> {
        let name = input.name();
        let file = input.path().and_then(|path| path.canonicalize().ok());
        let opened = input.open();
        raised.result()?;
        let opened = opened.map_err(|error| unreadable(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut batches = Batches::new(opened, Arc::clone(&stop));
        let step = batches.step();
        raised.result()?;
        Ok(Self { name, file, batches, step, stop, signals: Signals::new(None), raised })
    }

    /// Reads the next batch. Returns `false` if there is none.
    fn go_on(&mut self) -> PyResult<bool> {
        if !matches!(self.step, Step::More) {
            return Ok(false);
        }
        self.stop.store(!self.signals.go_on(), Ordering::Relaxed);
        self.step = self.batches.step();
        self.signals.result()?;
        self.raised.result()?;
        Ok(true)
    }

    fn partial(&self) -> Option<String> {
        match &self.step {
            Step::Damaged(error) => Some(error.to_string()),
            Step::More | Step::Over | Step::Stopped(_) => None,
        }
    }
}

/// Creates the file `output`, which must not be the file that is read.
fn create(output: &Path, reading: &Reading) -> PyResult<(Unfinished, File)> {
    let is_read = reading.file.as_ref().is_some_and(|input| {
        input.is_file() && output.canonicalize().is_ok_and(|output| output == *input)
    });
    if is_read {
        let (output, input) = (output.display(), &reading.name);
        return Err(usage(format!("{output} is the same file as {input}: name another to write")));
    }
    Unfinished::create(output).map_err(|error| cannot_write(output, &error))
}

fn complete(unfinished: Unfinished, file: &File, output: &Path) -> PyResult<()> {
    unfinished.complete(file).map_err(|error| cannot_write(output, &error))
}

fn cannot_write(output: &Path, error: &std::io::Error) -> PyErr {
    unwritable(output, error, format!("{} cannot be written: {error}", output.display()))
}

/// Returns the error with the name of the file that it concerns.
fn blame(error: RewriteError, input: &str, output: &Path) -> PyErr {
    match error {
        RewriteError::Config(error) => usage(format!("settings: {error}")),
        RewriteError::Write(WriteError::Io(error)) => cannot_write(output, &error),
        RewriteError::Write(_) | RewriteError::NotForPcap(_) => {
            let output = output.display().to_string();
            of_file(&output, format!("{output}: {error}"))
        }
        _ => of_file(input, format!("{input}: {error}")),
    }
}

/// Returns the format that the extension of the name stands for; `None` if it stands for none.
fn format(name: &Path) -> Option<FileFormat> {
    match name.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "pcap" | "cap" => Some(FileFormat::Pcap),
        "pcapng" => Some(FileFormat::PcapNg),
        _ => None,
    }
}

fn json(figures: &impl Serialize, partial: Option<String>) -> PyResult<Done> {
    let text = serde_json::to_string(figures).map_err(internal)?;
    Ok((text, partial))
}
