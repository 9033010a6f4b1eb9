//! The result of `rxo.analyze`.

use std::path::PathBuf;
use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rxo_trace::projection::{Given, Projection};
use rxo_trace::report::Report;
use rxo_trace::study::{MAX_FLOWS, Part, Terms};
use rxo_trace::{html, parquet, tables, text};
use serde::Serialize;

use crate::errors::{internal, unwritable, usage};
use crate::numbers;
use crate::rules;
use crate::table::Table;

/// The predicted effect of coalescing on captured traffic: the result of `rxo.analyze`.
///
/// `print(study)` shows the report as the command `rxo analyze` does. Studies of parts of the traffic can be
/// merged, in any order; they can be pickled, and sent to other machines.
#[pyclass(frozen, module = "rxo")]
pub(crate) struct Study {
    part: Part,
    /// The user's costs of receiving; `None` for assumed costs.
    costs: Option<Given>,
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

    /// The headline figures: whether coalescing is worth it, and why.
    #[getter]
    fn decision<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        section(py, "decision", &self.full().decision)
    }

    /// Properties of the traffic that do not depend on the policy.
    #[getter]
    fn traffic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        section(py, "traffic", &self.full().traffic)
    }

    /// Facts and remedies for the user, one sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.full().notes.clone()
    }

    /// Returns the study with other costs of receiving, from which the decision is computed. Copies it.
    fn with_costs(&self, costs: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::of(self.part.clone(), Some(rules::costs(costs)?)))
    }

    /// Returns the study of the traffic of this study and the others. All must have the same settings; the costs are those
    /// of this study.
    #[pyo3(signature = (*others))]
    fn merge(&self, py: Python<'_>, others: Vec<Py<Self>>) -> PyResult<Self> {
        let others: Vec<&Self> = others.iter().map(Py::get).collect();
        let merged = py.detach(|| {
            let mut parts = others.iter().map(|study| study.part.clone());
            parts.try_fold(self.part.clone(), Part::merge)
        });
        merged
            .map(|part| Self::of(part, self.costs.clone()))
            .map_err(|error| usage(format!("a study cannot be merged: {error}")))
    }

    /// Returns the study as bytes, without costs. Equal studies have equal bytes. `rxo analyze` merges files with
    /// such bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.part.to_bytes());
        PyBytes::new(py, &bytes)
    }

    /// Restores the study from the bytes that `to_bytes` returned.
    #[staticmethod]
    #[pyo3(signature = (bytes, costs=None))]
    fn from_bytes(
        py: Python<'_>,
        bytes: PyBackedBytes,
        costs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let costs = costs.map(rules::costs).transpose()?;
        let part = py.detach(|| Part::from_bytes(&bytes));
        part.map(|part| Self::of(part, costs))
            .map_err(|error| usage(format!("not a study: {error}")))
    }

    /// Supports pickle.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let (py, study) = (slf.py(), slf.get());
        let read = slf.get_type().getattr("from_bytes")?;
        let costs = study.costs.as_ref().map(|given| object(py, given)).transpose()?;
        Ok((read, (study.to_bytes(py), costs)))
    }

    /// Returns the report with its figures as the text of one self-contained HTML page.
    ///
    /// `flows` limits the number of flows in the list.
    #[pyo3(signature = (*, flows=10))]
    fn html(&self, #[pyo3(from_py_with = numbers::flows)] flows: usize) -> PyResult<String> {
        html::page(&self.listing(flows)).map_err(internal)
    }

    /// Shows the decision and the figures in a notebook.
    fn _repr_html_(&self) -> PyResult<String> {
        html::fragment(self.full()).map_err(internal)
    }

    /// Writes the report with its figures as one self-contained HTML file.
    ///
    /// `flows` limits the number of flows in the list. The file is either complete or absent.
    #[pyo3(signature = (path, *, flows=10))]
    fn report(
        &self,
        py: Python<'_>,
        path: PathBuf,
        #[pyo3(from_py_with = numbers::flows)] flows: usize,
    ) -> PyResult<()> {
        let report = self.listing(flows);
        py.detach(|| html::write(&report, &path))
            .map_err(|error| unwritable(&path, &error, format!("{}: {error}", path.display())))
    }

    /// Writes all tables as Parquet data sets into a folder: each into a folder of its name, such as `flows`.
    fn parquet(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| parquet::write(self.full(), &folder))
            .map_err(|error| unwritable(&folder, &error, error.to_string()))
    }

    /// Returns the report as JSON, as `rxo analyze --json` prints it, with all flows.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(self.full()).map_err(internal)
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
    pub(crate) fn of(part: Part, costs: Option<Given>) -> Self {
        Self { part, costs, report: OnceLock::new() }
    }

    /// Returns the report with all flows. It is created when it is first needed.
    fn full(&self) -> &Report {
        self.report.get_or_init(|| {
            let Some(Given { costs, from, .. }) = self.costs.clone() else {
                return self.part.report(&Terms { top: MAX_FLOWS, ..Terms::default() });
            };
            let terms = Terms { costs, costs_from: from.clone(), top: MAX_FLOWS };
            let mut report = self.part.report(&terms);
            report.projection = Projection::of(&costs, &from, &report.traffic, &report.outcome);
            report
        })
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

/// A function that restores a study, and its arguments: the bytes, and the costs if there are any.
type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, Option<Bound<'py, PyAny>>));

/// Returns a part of the report as an object of the class that `rxo._study.<name>` chooses.
fn section<'py>(py: Python<'py>, name: &str, part: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    py.import("rxo._study")?.getattr(name)?.call1((object(py, part)?,))
}

/// Returns `value` as Python's lists, dictionaries and numbers.
fn object<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(internal)?;
    py.import("json")?.getattr("loads")?.call1((text,))
}
