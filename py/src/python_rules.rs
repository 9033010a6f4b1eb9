//! Rules that are written in Python: the trait `Rules` of `rxo-coalesce`, answered by an object.
//!
//! A method that returns `NotImplemented` leaves the decision to the object's policy. An exception is kept and
//! raised when the call of the engine returns; until then the policy decides.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rxo_coalesce::rules::{self, Flow, Moment, Placement, Release, Rules};
use rxo_coalesce::{BypassReason, Candidate, FlushReason, Held, Policy};
use rxo_frame::Instant;
use rxo_wire::{Parsed, TcpSegment, Transport};

use crate::errors::usage;
use crate::rules::policy;

/// A segment that may be coalesced. See `rxo.Segment`.
#[pyclass(frozen, get_all, module = "rxo", name = "Segment")]
#[derive(Clone)]
pub(crate) struct SegmentView {
    seq: u32,
    ack: u32,
    window: u16,
    flags: u16,
    payload_bytes: u32,
    timestamp: Option<(u32, u32)>,
    ip_id: u16,
    hop_limit: u8,
    traffic_class: u8,
}

/// Neighbouring held segments that will be one delivery. See `rxo.Run`.
#[pyclass(frozen, get_all, module = "rxo", name = "Run")]
#[derive(Clone)]
pub(crate) struct RunView {
    segments: u32,
    payload_bytes: u32,
    first_seq: u32,
    next_seq: u32,
    oldest_ns: u64,
    end: Option<&'static str>,
}

/// The state of a flow. See `rxo.Flow`.
#[pyclass(module = "rxo", name = "Flow")]
pub(crate) struct FlowView {
    #[pyo3(get)]
    runs: Vec<RunView>,
    #[pyo3(get)]
    next_seq: Option<u32>,
    #[pyo3(get)]
    delivered_at_ns: u64,
    /// Anything that the rules keep for the flow; `None` at first.
    #[pyo3(get, set)]
    memory: Option<Py<PyAny>>,
}

/// The rules of a Python object.
#[derive(Clone)]
pub(crate) struct PythonRules {
    object: Arc<Py<PyAny>>,
    policy: Policy,
    most_runs: usize,
    remembers: bool,
    raised: Kept,
}

/// The first exception that a method of rules raised.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Option<PyErr>>>);

impl Kept {
    /// # Errors
    /// Returns the exception as an error, if there is one.
    pub(crate) fn result(&self) -> PyResult<()> {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(Ok(()), Err)
    }

    /// Returns `true` if no exception was raised.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

impl PythonRules {
    /// Creates the rules of `object`, which has the attributes of `rxo.Rules`.
    ///
    /// # Errors
    /// If an attribute is missing or invalid.
    pub(crate) fn new(object: &Bound<'_, PyAny>, raised: Kept) -> PyResult<Self> {
        // Any mapping: a class may protect its settings from changes.
        let settings = Some(object.getattr("settings")?).filter(|settings| !settings.is_none());
        let settings =
            settings.map(|it| object.py().get_type::<PyDict>().call1((it,))).transpose()?;
        let settings = settings.as_ref().map(|it| it.cast()).transpose()?;
        let name: String = object.getattr("policy")?.extract()?;
        Ok(Self {
            policy: policy(&name, settings)?,
            most_runs: most_runs(object)?,
            remembers: object.getattr("remembers")?.extract()?,
            object: Arc::new(object.clone().unbind()),
            raised,
        })
    }

    /// Calls `method`. `None` if it raised an exception, which is kept, or leaves the decision to the policy. After an
    /// exception nothing is called until it is raised.
    fn ask<'py, T>(
        &self,
        py: Python<'py>,
        (method, arguments): (&str, impl pyo3::call::PyCallArgs<'py>),
        read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if !self.raised.is_empty() {
            return None;
        }
        let answer = self.object.bind(py).call_method1(method, arguments).and_then(|answer| {
            let is_left = answer.is(py.NotImplemented());
            if is_left { Ok(None) } else { read(&answer).map(Some) }
        });
        answer.unwrap_or_else(|error| {
            self.raised.keep(error);
            None
        })
    }

    /// Calls `method` with the state of a flow, and keeps the memory that it leaves there.
    fn ask_of_flow<'py, T>(
        &self,
        py: Python<'py>,
        flow: &mut Flow<'_, Option<Py<PyAny>>>,
        (method, others): (&str, (impl IntoPyObject<'py>, Option<u64>)),
        read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let view = FlowView {
            runs: flow.runs.iter().map(run_view).collect(),
            next_seq: flow.next_seq.map(|seq| seq.0),
            delivered_at_ns: flow.delivered_at.as_nanos(),
            memory: flow.memory.take(),
        };
        let view = match Bound::new(py, view) {
            Ok(view) => view,
            Err(error) => {
                self.raised.keep(error);
                return None;
            }
        };
        let answer = match others {
            (one, None) => self.ask(py, (method, (view.clone(), one)), read),
            (one, Some(now)) => self.ask(py, (method, (view.clone(), one, now)), read),
        };
        *flow.memory = view.borrow_mut().memory.take();
        answer
    }
}

impl Rules for PythonRules {
    type Memory = Option<Py<PyAny>>;

    fn policy(&self) -> &Policy {
        &self.policy
    }

    fn candidate(&self, parsed: &Parsed) -> Result<(), BypassReason> {
        let by_policy = || rxo_coalesce::candidate(parsed, &self.policy).map(|_| ());
        let Transport::Tcp(tcp) = &parsed.transport else { return by_policy() };
        let segment = segment_view(tcp, &parsed.ip, parsed.payload_bytes());
        Python::attach(|py| self.ask(py, ("candidate", (segment,)), optional(bypass_reason)))
            .map_or_else(by_policy, |reason| reason.map_or(Ok(()), Err))
    }

    fn verdict(&self, flow: &mut Flow<'_, Self::Memory>, next: &Candidate<'_>) -> Placement {
        let view = candidate_view(next);
        Python::attach(|py| self.ask_of_flow(py, flow, ("verdict", (view, None)), placement))
            .unwrap_or_else(|| rules::by_policy::verdict(&self.policy, flow, next))
    }

    fn close(
        &self,
        run: &Held,
        last: &Candidate<'_>,
        next: Option<&Candidate<'_>>,
    ) -> Option<FlushReason> {
        let arguments = (held_view(run), candidate_view(last), next.map(candidate_view));
        Python::attach(|py| self.ask(py, ("close", arguments), optional(flush_reason)))
            .unwrap_or_else(|| rules::by_policy::close(&self.policy, run, last, next))
    }

    fn hold(&self, flow: &mut Flow<'_, Self::Memory>, moment: Moment, now: Instant) -> Release {
        let name = match moment {
            Moment::Placed => "placed",
            Moment::PacketWindow => "packet-window",
            Moment::EndOfPoll(_) => "end-of-poll",
            Moment::Due => "due",
        };
        let arguments = ("hold", (name, Some(now.as_nanos())));
        Python::attach(|py| self.ask_of_flow(py, flow, arguments, release))
            .unwrap_or_else(|| rules::by_policy::hold(&self.policy, flow, moment, now))
    }

    fn rank(&self, flow: &Flow<'_, Self::Memory>, _: Instant) -> u8 {
        u8::from(self.remembers || !flow.runs.is_empty())
    }

    fn most_runs(&self) -> usize {
        self.most_runs
    }
}

/// Returns the attribute `most_runs`, which the engine compares with its limit.
fn most_runs(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let runs = object.getattr("most_runs")?;
    let refused =
        |_| usage(format!("most_runs {runs} is invalid: give a number of runs, such as 64"));
    runs.extract().map_err(refused)
}

/// Reads a placement: `"last"`, `"in-sequence"`, `("ahead", flush)` or `("bypass", flush, bypass)`.
fn placement(answer: &Bound<'_, PyAny>) -> PyResult<Placement> {
    if let Ok(text) = answer.extract::<String>() {
        return match text.as_str() {
            "last" => Ok(Placement::Last),
            "in-sequence" => Ok(Placement::InSequence),
            _ => Err(invalid("verdict", answer, PLACEMENTS)),
        };
    }
    let get = |at| answer.get_item(at);
    match (answer.len(), get(0).and_then(|first| first.extract::<String>()).as_deref()) {
        (Ok(2), Ok("ahead")) => Ok(Placement::Ahead(flush_reason(&get(1)?)?)),
        (Ok(3), Ok("bypass")) => {
            Ok(Placement::Bypass(flush_reason(&get(1)?)?, bypass_reason(&get(2)?)?))
        }
        _ => Err(invalid("verdict", answer, PLACEMENTS)),
    }
}

const PLACEMENTS: &str = "\"last\", \"in-sequence\", (\"ahead\", flush reason) or \
                          (\"bypass\", flush reason, bypass reason)";

/// Reads a release: `None`, a time in nanoseconds, or `(runs, flush reason)`.
fn release(answer: &Bound<'_, PyAny>) -> PyResult<Release> {
    if answer.is_none() {
        return Ok(Release::Nothing(None));
    }
    if let Ok(at) = answer.extract::<u64>() {
        return Ok(Release::Nothing(Some(Instant::from_nanos(at))));
    }
    match answer.extract::<(usize, Bound<'_, PyAny>)>() {
        Ok((runs, reason)) => Ok(Release::Runs(runs, flush_reason(&reason)?)),
        Err(_) => {
            Err(invalid("hold", answer, "None, a time in nanoseconds or (runs, flush reason)"))
        }
    }
}

/// Returns a reader of answers that may be `None`.
fn optional<'py, T>(
    read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
) -> impl FnOnce(&Bound<'py, PyAny>) -> PyResult<Option<T>> {
    |answer| if answer.is_none() { Ok(None) } else { read(answer).map(Some) }
}

fn flush_reason(answer: &Bound<'_, PyAny>) -> PyResult<FlushReason> {
    let all = FlushReason::ALL.iter();
    named(answer, "flush", all.map(|reason| (reason.name(), *reason)))
}

fn bypass_reason(answer: &Bound<'_, PyAny>) -> PyResult<BypassReason> {
    let all = BypassReason::ALL.iter();
    named(answer, "bypass", all.map(|reason| (reason.name(), *reason)))
}

fn named<T>(
    answer: &Bound<'_, PyAny>,
    kind: &str,
    mut all: impl Iterator<Item = (&'static str, T)> + Clone,
) -> PyResult<T> {
    let names = all.clone();
    let text: String = answer.extract()?;
    all.find(|(name, _)| *name == text).map(|(_, reason)| reason).ok_or_else(|| {
        let names: Vec<&str> = names.map(|(name, _)| name).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("there is no {kind} reason '{text}'; take one of {names}"))
    })
}

fn invalid(method: &str, answer: &Bound<'_, PyAny>, accepted: &str) -> PyErr {
    PyTypeError::new_err(format!("{method} returned {answer}; return {accepted}"))
}

fn candidate_view(candidate: &Candidate<'_>) -> SegmentView {
    segment_view(&candidate.tcp, &candidate.ip, candidate.payload_bytes())
}

fn segment_view(tcp: &TcpSegment, ip: &rxo_wire::Ip, payload_bytes: u32) -> SegmentView {
    let has_timestamp = tcp.options.has_timestamp();
    SegmentView {
        seq: tcp.seq.0,
        ack: tcp.ack.0,
        window: tcp.window,
        flags: tcp.flags.bits(),
        payload_bytes,
        timestamp: has_timestamp.then_some((tcp.timestamp.value, tcp.timestamp.echo)),
        ip_id: ip.id,
        hop_limit: ip.hop_limit,
        traffic_class: ip.traffic_class,
    }
}

fn run_view(run: &rules::Run) -> RunView {
    let end = run.end.map(FlushReason::name);
    RunView { oldest_ns: run.oldest.as_nanos(), end, ..held_view(&run.held) }
}

fn held_view(held: &Held) -> RunView {
    RunView {
        segments: held.segments,
        payload_bytes: held.payload_bytes,
        first_seq: held.next_seq.0.wrapping_sub(held.payload_bytes),
        next_seq: held.next_seq.0,
        oldest_ns: held.first_arrival.as_nanos(),
        end: None,
    }
}
