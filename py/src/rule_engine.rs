//! `rxo.RuleEngine`, the engine for rules in Python, and `rxo.compare`.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use rxo_coalesce::rules::{self, Rules as _};
use rxo_frame::Instant;
use rxo_trace::projection::{ASSUMED_FROM, Costs};
use rxo_trace::study::compare::{NamedPolicy, PolicyComparison, Settings};
use rxo_trace::study::{BadPollRule, Ended};
use rxo_trace::text;

use crate::engine::{Buffer, Delivery, collect, config, counters, frames_of};
use crate::errors::{internal, unreadable, usage, warn_partial};
use crate::inputs::{Input, Raised};
use crate::python_rules::{Kept, PythonRules};
use crate::rules::checksums;
use crate::signals::Signals;

/// The engine for rules that are written in Python. See `rxo.RuleEngine`.
#[pyclass(module = "rxo")]
pub(crate) struct RuleEngine {
    engine: rules::RuleEngine<PythonRules, Buffer>,
    raised: Kept,
    /// Deliveries of calls that ended with an exception; the next call returns them.
    pending: Vec<Delivery>,
}

#[pymethods]
impl RuleEngine {
    /// Creates an engine that runs `rules`, an object of a class derived from `rxo.Rules`. The other arguments
    /// are those of `rxo.Engine`.
    #[new]
    #[pyo3(signature = (rules, *, link="ethernet", trust_checksums=false, batch=256))]
    fn new(
        rules: &Bound<'_, PyAny>,
        link: &str,
        trust_checksums: bool,
        batch: usize,
    ) -> PyResult<Self> {
        let raised = Kept::default();
        let rules = PythonRules::new(rules, raised.clone())?;
        let config = config(*rules.policy(), link, trust_checksums, batch)?;
        let engine =
            rules::RuleEngine::new(rules, config).map_err(|error| usage(error.to_string()))?;
        Ok(Self { engine, raised, pending: Vec::new() })
    }

    /// Processes the frames of one poll, which takes place at `now_ns`, and ends the poll. Returns the
    /// deliveries.
    fn poll(&mut self, frames: Vec<PyBackedBytes>, now_ns: u64) -> PyResult<Vec<Delivery>> {
        let (mut batch, now) = (frames_of(frames, now_ns), Instant::from_nanos(now_ns));
        self.run(|engine, ready| engine.poll(&mut batch, now, |all| collect(all, ready)))
    }

    /// Processes frames without ending the poll. Returns the deliveries.
    fn push(&mut self, frames: Vec<PyBackedBytes>, now_ns: u64) -> PyResult<Vec<Delivery>> {
        let (mut batch, now) = (frames_of(frames, now_ns), Instant::from_nanos(now_ns));
        self.run(|engine, ready| engine.push(&mut batch, now, |all| collect(all, ready)))
    }

    /// Returns the time at which `on_timeout` is due, in nanoseconds; None while nothing is held.
    #[getter]
    fn poll_at(&self) -> Option<u64> {
        self.engine.poll_at().map(Instant::as_nanos)
    }

    /// Asks the rules about the flows whose time has come. Returns the deliveries.
    fn on_timeout(&mut self, now_ns: u64) -> PyResult<Vec<Delivery>> {
        let now = Instant::from_nanos(now_ns);
        self.run(|engine, ready| engine.on_timeout(now, |all| collect(all, ready)))
    }

    /// Delivers all held frames.
    fn flush(&mut self, now_ns: u64) -> PyResult<Vec<Delivery>> {
        let now = Instant::from_nanos(now_ns);
        self.run(|engine, ready| engine.flush(now, |all| collect(all, ready)))
    }

    /// Returns the totals of the engine, and how often each reason occurred.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, self.engine.counters())
    }
}

impl RuleEngine {
    /// Runs `work` and returns the deliveries.
    ///
    /// # Errors
    /// The exception that a method of the rules raised. The next call returns the deliveries.
    fn run(
        &mut self,
        work: impl FnOnce(&mut rules::RuleEngine<PythonRules, Buffer>, &mut Vec<Delivery>),
    ) -> PyResult<Vec<Delivery>> {
        work(&mut self.engine, &mut self.pending);
        self.raised.result()?;
        Ok(core::mem::take(&mut self.pending))
    }
}

/// Compares policies over captures. Returns the table as text and as JSON. See `rxo.compare`.
#[pyfunction]
#[pyo3(signature = (captures, *, policies, poll, checksum, rate))]
pub(crate) fn compare(
    py: Python<'_>,
    captures: &Bound<'_, PyAny>,
    policies: Vec<Bound<'_, PyAny>>,
    poll: &str,
    checksum: &str,
    rate: f64,
) -> PyResult<(String, String)> {
    let poll = poll.parse().map_err(|BadPollRule| {
        usage(format!("poll {poll} is invalid: {}", BadPollRule::ACCEPTED))
    })?;
    let settings = Settings {
        poll,
        checksums: checksums(checksum)?,
        costs: Costs::ASSUMED,
        costs_from: ASSUMED_FROM.to_owned(),
        rate_gbit_per_s: rate,
    };
    let (kept, raised) = (Kept::default(), Raised::default());
    let mut all = Vec::new();
    for policy in policies {
        all.extend(policies_of(&policy, &kept)?);
    }
    let inputs = Input::all(captures, &raised)?;
    let named = |error| usage(format!("policies: {error}"));
    let mut comparison = PolicyComparison::new(all, settings).map_err(named)?;
    let mut signals = Signals::new(None);
    for input in inputs {
        let mut opened = input.open().map_err(|error| unreadable(&error))?;
        let ended = comparison.read(&mut opened, |_| signals.go_on());
        raised.result()?;
        kept.result()?;
        if ended == Ended::Stopped {
            break;
        }
    }
    signals.result()?;
    let table = comparison.finish(None);
    kept.result()?;
    if let Some(why) = &table.partial {
        warn_partial(py, why)?;
    }
    let json = serde_json::to_string(&table).map_err(internal)?;
    Ok((text::comparison(&table), json))
}

/// Returns the policies that `policy` stands for: a text as in the command's `--policies`, or rules.
fn policies_of(policy: &Bound<'_, PyAny>, kept: &Kept) -> PyResult<Vec<NamedPolicy>> {
    if let Ok(names) = policy.extract::<String>() {
        return NamedPolicy::list(&names).map_err(|error| usage(format!("policies: {error}")));
    }
    let name: String = policy.getattr("name")?.extract()?;
    let rules = PythonRules::new(policy, kept.clone())?;
    Ok(vec![NamedPolicy::of_rules(&name, move || rules.clone())])
}
