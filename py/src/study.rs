//! `rxo.analyze` and its result.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rxo_trace::report::Report;
use rxo_trace::study::{Ended, MAX_FLOWS, Point, Settings};
use rxo_trace::{html, parquet, study, text};

use crate::errors::{capture, usage, warn_partial};
use crate::inputs::{Input, Raised};
use crate::rules::{self, Texts};
use crate::signals::Signals;
use crate::table::Table;
use crate::tables;

/// What coalescing would do to captured traffic: the result of `rxo.analyze`.
///
/// `print(study)` shows it as the command `rxo analyze` does.
#[pyclass(frozen, module = "rxo")]
pub(crate) struct Study {
    report: Report,
}

#[pymethods]
impl Study {
    /// A table with a row for each flow (one direction of a connection), most packets first.
    fn flows(&self) -> PyResult<Table> {
        tables::flows(&self.report)
    }

    /// A table with a row for each of the settings tried; the first are the chosen ones.
    fn settings(&self) -> PyResult<Table> {
        tables::settings(&self.report)
    }

    /// Writes the report with its figures as one self-contained HTML file.
    ///
    /// `flows` limits the list of flows. The file is complete or absent.
    #[pyo3(signature = (path, *, flows=LISTED_FLOWS))]
    fn report(&self, py: Python<'_>, path: PathBuf, flows: usize) -> PyResult<()> {
        let report = self.listing(flows);
        py.detach(|| html::write(&report, &path))
            .map_err(|error| capture(format!("{}: {error}", path.display())))
    }

    /// Writes all flows and all tried settings as Parquet tables into a folder.
    fn parquet(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| parquet::write(&self.report, &folder))
            .map_err(|error| capture(error.to_string()))
    }

    /// The report as JSON, as `rxo analyze --json` prints it, with all flows.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.report).map_err(|error| capture(error.to_string()))
    }

    /// Why the study is incomplete (a damaged capture); `None` if it is complete.
    #[getter]
    fn partial(&self) -> Option<&str> {
        self.report.partial.as_deref()
    }

    /// Packets in the captures.
    #[getter]
    fn packets(&self) -> u64 {
        self.report.traffic.packets
    }

    /// Packets that the chosen settings eliminate: packets less deliveries.
    #[getter]
    fn eliminated(&self) -> u64 {
        self.report.outcome.eliminated
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
    /// The report with so many flows at most.
    fn listing(&self, flows: usize) -> Report {
        let mut report = self.report.clone();
        report.flows.truncate(flows);
        report
    }
}

/// Flows that are listed unless asked otherwise.
const LISTED_FLOWS: usize = 10;

/// Studies what coalescing would do to the traffic in captures. See `rxo.analyze`.
#[pyfunction]
#[pyo3(signature = (captures, *, poll, policy, settings, sweep, flow, checksum, advise))]
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
) -> PyResult<Study> {
    let (poll, polls) = rules::polls(poll.into_vec())?;
    let chosen = Point { policy: rules::policy(policy, settings)?, poll };
    let settings = Settings {
        sweep: rules::sweep(&chosen, polls, sweep.into_vec())?,
        advise,
        checksums: rules::checksums(checksum)?,
        filter: flow.map(rules::filter).transpose()?,
        top: MAX_FLOWS,
        seed: RandomState::new().hash_one(0),
        ..Settings::new(chosen)
    };
    let raised = Raised::default();
    let inputs = Input::all(captures, &raised)?;
    let report = py.detach(|| read(settings, inputs, &raised))?;
    if let Some(why) = &report.partial {
        warn_partial(py, why)?;
    }
    Ok(Study { report })
}

/// Reads all captures.
///
/// # Errors
/// If the settings are invalid, no capture can be opened, a signal came, or an open file raised.
fn read(settings: Settings, inputs: Vec<Input>, raised: &Raised) -> PyResult<Report> {
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
        _ => Ok(study.finish(None)),
    }
}
