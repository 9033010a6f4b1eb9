//! `rxo.analyze` and its result.

use std::path::PathBuf;
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use rxo_trace::report::Report;
use rxo_trace::study::{Ended, MAX_FLOWS, Part, Point, Settings, Span, Terms};
use rxo_trace::{html, parquet, study, tables, text};

use crate::errors::{capture, usage, warn_partial};
use crate::inputs::{Input, Raised};
use crate::rules::{self, Texts};
use crate::signals::Signals;
use crate::table::Table;

/// The predicted effect of coalescing on captured traffic: the result of `rxo.analyze`.
///
/// `print(study)` shows the report as the command `rxo analyze` does. Studies of parts of the traffic can be
/// merged, in any order; they can be pickled, and sent to other machines.
#[pyclass(frozen, module = "rxo")]
pub(crate) struct Study {
    part: Part,
    report: OnceLock<Report>,
}

#[pymethods]
impl Study {
    /// Returns a table with a row for each flow (one direction of a connection), most packets first.
    fn flows(&self) -> PyResult<Table> {
        Table::of(tables::flows(self.full()))
    }

    /// Returns a table with a row for each combination of settings that was tried, the chosen one first.
    fn settings(&self) -> PyResult<Table> {
        Table::of(tables::settings(self.full()))
    }

    /// Returns a table with a row for each reason of each row of the settings.
    fn reasons(&self) -> PyResult<Table> {
        Table::of(tables::reasons(self.full()))
    }

    /// Returns a table with a row for each bucket of each histogram of each row of the settings.
    fn histograms(&self) -> PyResult<Table> {
        Table::of(tables::histograms(self.full()))
    }

    /// Returns a table with a row for each capture.
    fn sources(&self) -> PyResult<Table> {
        Table::of(tables::sources(self.full()))
    }

    /// Returns the study of the traffic of this study and the others. All must have the same settings.
    #[pyo3(signature = (*others))]
    fn merge(&self, py: Python<'_>, others: Vec<Py<Self>>) -> PyResult<Self> {
        let others: Vec<&Self> = others.iter().map(Py::get).collect();
        let merged = py.detach(|| {
            let mut parts = others.iter().map(|study| study.part.clone());
            parts.try_fold(self.part.clone(), Part::merge)
        });
        merged.map(Self::of).map_err(|error| usage(format!("a study cannot be merged: {error}")))
    }

    /// Returns the study as bytes. Equal studies have equal bytes. `rxo analyze` merges files with such
    /// bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.part.to_bytes());
        PyBytes::new(py, &bytes)
    }

    /// Restores the study from the bytes that `to_bytes` returned.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: PyBackedBytes) -> PyResult<Self> {
        let part = py.detach(|| Part::from_bytes(&bytes));
        part.map(Self::of).map_err(|error| usage(format!("not a study: {error}")))
    }

    /// Supports pickle.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let read = slf.get_type().getattr("from_bytes")?;
        Ok((read, (slf.get().to_bytes(slf.py()),)))
    }

    /// Writes the report with its figures as one self-contained HTML file.
    ///
    /// `flows` limits the number of flows in the list. The file is either complete or absent.
    #[pyo3(signature = (path, *, flows=10))]
    fn report(&self, py: Python<'_>, path: PathBuf, flows: usize) -> PyResult<()> {
        let report = self.listing(flows);
        py.detach(|| html::write(&report, &path))
            .map_err(|error| capture(format!("{}: {error}", path.display())))
    }

    /// Writes all flows and all tried settings as Parquet tables into a folder.
    fn parquet(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| parquet::write(self.full(), &folder))
            .map_err(|error| capture(error.to_string()))
    }

    /// Returns the report as JSON, as `rxo analyze --json` prints it, with all flows.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(self.full()).map_err(|error| capture(error.to_string()))
    }

    /// The reason why the study is incomplete (a damaged capture); `None` if it is complete.
    #[getter]
    fn partial(&self) -> Option<&str> {
        self.full().partial.as_deref()
    }

    /// The number of packets in the captures.
    #[getter]
    fn packets(&self) -> u64 {
        self.full().traffic.packets
    }

    /// The number of packets that the chosen settings eliminate: packets minus deliveries.
    #[getter]
    fn eliminated(&self) -> u64 {
        self.full().outcome.eliminated
    }

    fn __str__(&self) -> String {
        text::text(&self.listing(LISTED_FLOWS))
    }

    fn __repr__(&self) -> String {
        let (packets, eliminated) = (self.packets(), self.eliminated());
        format!("<rxo.Study: {packets} packets, {eliminated} eliminated>")
    }
}

impl Study {
    fn of(part: Part) -> Self {
        Self { part, report: OnceLock::new() }
    }

    /// Returns the report with all flows. It is created when it is first needed.
    fn full(&self) -> &Report {
        self.report.get_or_init(|| self.part.report(&Terms { top: MAX_FLOWS, ..Terms::default() }))
    }

    /// Returns the report with at most `flows` flows.
    fn listing(&self, flows: usize) -> Report {
        let mut report = self.full().clone();
        report.flows.truncate(flows);
        report
    }
}

/// The default number of flows that are listed.
const LISTED_FLOWS: usize = 10;

/// Predicts the effect of coalescing on the traffic in captures. See `rxo.analyze`.
#[pyfunction]
#[pyo3(signature = (captures, *, poll, policy, settings, sweep, flow, checksum, advise, part, place))]
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
    flow: Option<&str>,
    checksum: &str,
    advise: bool,
    part: Option<(u32, u32)>,
    place: Option<(u64, u32, u32)>,
) -> PyResult<Study> {
    let (poll, polls) = rules::polls(poll.into_vec())?;
    let chosen = Point { policy: rules::policy(policy, settings)?, poll };
    let settings = Settings {
        sweep: rules::sweep(&chosen, polls, sweep.into_vec())?,
        advise,
        checksums: rules::checksums(checksum)?,
        filter: flow.map(rules::filter).transpose()?,
        top: MAX_FLOWS,
        ..Settings::new(chosen)
    };
    let raised = Raised::default();
    let inputs = Input::all(captures, &raised)?;
    let (span, inputs) = match (part, place) {
        (Some(part), _) => {
            let (span, slices) = slices_of(&inputs, part)?;
            (Some(span), slices)
        }
        (None, place) => (place.map(span_at), inputs),
    };
    let part = py.detach(|| read(settings, inputs, span, &raised))?;
    if let Some(why) = part.damage() {
        warn_partial(py, &why)?;
    }
    Ok(Study::of(part))
}

/// Returns the place of part `number` of `parts` of these files, and the inputs that the part reads.
///
/// # Errors
/// If an input is not a path, a file cannot be read, or there is no such part.
fn slices_of(inputs: &[Input], (number, parts): (u32, u32)) -> PyResult<(Span, Vec<Input>)> {
    if !(1..=parts).contains(&number) {
        return Err(usage(format!("part ({number}, {parts}): write (N, M) with N from 1 to M")));
    }
    let paths = inputs.iter().map(|input| match input {
        Input::Path(path) => Ok(path.clone()),
        Input::Slice(_) | Input::Bytes(_) | Input::File(_) => {
            Err(usage("part: only files that are given by path can be cut"))
        }
    });
    let paths = paths.collect::<PyResult<Vec<PathBuf>>>()?;
    let (span, slices) =
        study::slices(&paths, number, parts).map_err(|error| capture(error.to_string()))?;
    Ok((span, slices.into_iter().map(Input::Slice).collect()))
}

/// Returns the place of a capture that is one whole file of a series.
fn span_at((series, file, files): (u64, u32, u32)) -> Span {
    Span { series, from: (file, 0), to: (file + 1, 0), is_last: file + 1 == files }
}

/// Reads all captures.
///
/// # Errors
/// If the settings are invalid, no capture can be opened, a signal arrived, or an open file raised an
/// exception.
fn read(
    settings: Settings,
    inputs: Vec<Input>,
    span: Option<Span>,
    raised: &Raised,
) -> PyResult<Part> {
    let mut study = study::Study::new(settings).map_err(|error| usage(error.to_string()))?;
    let mut signals = Signals::new();
    let mut failed = None;
    let mut opened = 0;
    for input in inputs {
        let name = input.name();
        match input.open() {
            Ok(mut capture) => {
                opened += 1;
                if study.read(&mut capture, |_| signals.go_on()) == Ended::Stopped {
                    break;
                }
            }
            Err(error) => {
                study.refuse_source(&name, &error.to_string());
                failed = failed.or(Some(error));
            }
        }
        raised.result()?;
    }
    signals.result()?;
    match failed {
        Some(error) if opened == 0 => Err(capture(error.to_string())),
        _ => Ok(study.into_part(span, None)),
    }
}
