//! `rxo.RuleEngine`, the engine for rules in Python, and `rxo.compare`.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use rxo_coalesce::rules::{self, Rules as _};
use rxo_frame::Instant;
use rxo_trace::projection::{ASSUMED_FROM, Costs};
use rxo_trace::study::BadPollRule;
use rxo_trace::study::compare::{
    ComparisonTable, NamedPolicy, PolicyComparison, PolicyError, Settings,
};
use rxo_trace::text;

use crate::engine::{Buffer, Delivery, collect, config, counters, frames_of};
use crate::errors::{internal, unreadable, usage, warn_partial};
use crate::inputs::{Input, Raised};
use crate::numbers;
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
        #[pyo3(from_py_with = numbers::batch)] batch: usize,
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
    fn poll(
        &mut self,
        frames: Vec<PyBackedBytes>,
        #[pyo3(from_py_with = numbers::now_ns)] now_ns: u64,
    ) -> PyResult<Vec<Delivery>> {
        let (mut batch, now) = (frames_of(frames, now_ns), Instant::from_nanos(now_ns));
        self.run(|engine, ready| engine.poll(&mut batch, now, |all| collect(all, ready)))
    }

    /// Processes frames without ending the poll. Returns the deliveries.
    fn push(
        &mut self,
        frames: Vec<PyBackedBytes>,
        #[pyo3(from_py_with = numbers::now_ns)] now_ns: u64,
    ) -> PyResult<Vec<Delivery>> {
        let (mut batch, now) = (frames_of(frames, now_ns), Instant::from_nanos(now_ns));
        self.run(|engine, ready| engine.push(&mut batch, now, |all| collect(all, ready)))
    }

    /// Returns the time at which `on_timeout` is due, in nanoseconds; None while nothing is held.
    #[getter]
    fn poll_at(&self) -> Option<u64> {
        self.engine.poll_at().map(Instant::as_nanos)
    }

    /// Asks the rules about the flows whose time has come. Returns the deliveries.
    fn on_timeout(
        &mut self,
        #[pyo3(from_py_with = numbers::now_ns)] now_ns: u64,
    ) -> PyResult<Vec<Delivery>> {
        let now = Instant::from_nanos(now_ns);
        self.run(|engine, ready| engine.on_timeout(now, |all| collect(all, ready)))
    }

    /// Delivers all held frames.
    fn flush(
        &mut self,
        #[pyo3(from_py_with = numbers::now_ns)] now_ns: u64,
    ) -> PyResult<Vec<Delivery>> {
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
    #[pyo3(from_py_with = numbers::rate)] rate: f64,
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
    let chosen = policies.iter().map(|policy| Chosen::of(policy, &kept));
    let chosen = chosen.collect::<PyResult<Vec<_>>>()?;
    let inputs = Input::all(captures, &raised)?;
    // The thread that unpacks a compressed file of Python needs the interpreter's lock.
    let table = py.detach(|| read(settings, chosen, inputs, (&raised, &kept)))?;
    if let Some(why) = &table.partial {
        warn_partial(py, why)?;
    }
    let json = serde_json::to_string(&table).map_err(internal)?;
    Ok((text::comparison(&table), json))
}

/// Reads all captures.
///
/// # Errors
/// If a policy is invalid, no capture can be opened, a signal arrived, or Python code raised an exception.
fn read(
    settings: Settings,
    chosen: Vec<Chosen>,
    inputs: Vec<Input>,
    (raised, kept): (&Raised, &Kept),
) -> PyResult<ComparisonTable> {
    let named = |error| usage(format!("policies: {error}"));
    let mut policies = Vec::new();
    for each in chosen {
        policies.extend(each.policies().map_err(named)?);
    }
    if policies.is_empty() {
        return Err(usage("policies: give at least one, such as linux-gro"));
    }
    let mut comparison = PolicyComparison::new(policies, settings).map_err(named)?;
    let mut signals = Signals::new(None);
    let (mut opened, mut failed) = (0, None);
    for input in inputs {
        let name = input.name();
        match input.open() {
            Ok(mut capture) => {
                opened += 1;
                comparison.read(&mut capture, |_| kept.is_empty() && signals.go_on());
            }
            Err(error) => {
                comparison.refuse_source(&name, &error.to_string());
                failed = failed.or(Some(error));
            }
        }
        raised.result()?;
        kept.result()?;
        signals.result()?;
    }
    if let Some(error) = failed.filter(|_| opened == 0) {
        return Err(unreadable(&error));
    }
    let table = comparison.finish(None);
    kept.result()?;
    Ok(table)
}

/// A policy of `rxo.compare`.
enum Chosen {
    /// A text as in the command's `--policies`.
    Names(String),
    /// The path of a TOML file.
    File(PathBuf),
    /// Rules with their name.
    Rules(String, PythonRules),
}

impl Chosen {
    fn of(policy: &Bound<'_, PyAny>, kept: &Kept) -> PyResult<Self> {
        if let Ok(names) = policy.extract() {
            return Ok(Self::Names(names));
        }
        if let Ok(path) = policy.extract() {
            return Ok(Self::File(path));
        }
        let name = policy.getattr("name")?.extract()?;
        Ok(Self::Rules(name, PythonRules::new(policy, kept.clone())?))
    }

    fn policies(self) -> Result<Vec<NamedPolicy>, PolicyError> {
        match self {
            Self::Names(names) => NamedPolicy::list(&names),
            Self::File(path) => Ok(vec![NamedPolicy::from_file(&path)?]),
            Self::Rules(name, rules) => {
                Ok(vec![NamedPolicy::of_rules(&name, move || rules.clone())])
            }
        }
    }
}
