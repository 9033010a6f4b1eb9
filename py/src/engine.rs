//! `rxo.Engine`: the receive engine for scripts.

use std::hash::{BuildHasher, RandomState};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use rxo_coalesce::{
    BypassReason, ChecksumForm, Config, Counters, Deliveries, Delivery as View, FlushReason, Policy,
};
use rxo_frame::{Frame, FrameBuffer, Gather, Instant, LinkKind};

use crate::errors::usage;
use crate::{numbers, rules};

/// The receive engine: frames in, deliveries out. See `rxo.Engine`.
#[pyclass(module = "rxo")]
pub(crate) struct Engine {
    engine: rxo_coalesce::Engine<Buffer>,
}

#[pymethods]
impl Engine {
    /// Creates an engine.
    ///
    /// policy: name of a profile. settings: fields of the policy to change. link: first header of the frames,
    /// "ethernet" or "ip". trust_checksums: do not verify checksums. batch: maximum number of frames per
    /// poll.
    #[new]
    #[pyo3(signature = (policy="linux-gro", *, settings=None, link="ethernet", trust_checksums=false, batch=256))]
    fn new(
        policy: &str,
        settings: Option<&Bound<'_, PyDict>>,
        link: &str,
        trust_checksums: bool,
        #[pyo3(from_py_with = numbers::batch)] batch: usize,
    ) -> PyResult<Self> {
        let config = config(rules::policy(policy, settings)?, link, trust_checksums, batch)?;
        let engine = rxo_coalesce::Engine::new(config).map_err(|error| usage(error.to_string()))?;
        Ok(Self { engine })
    }

    /// Processes the frames of one poll, which takes place at `now_ns`, and ends the poll. Returns the
    /// deliveries.
    fn poll(
        &mut self,
        py: Python<'_>,
        frames: Vec<PyBackedBytes>,
        #[pyo3(from_py_with = numbers::now_ns)] now_ns: u64,
    ) -> Vec<Delivery> {
        self.run(py, |engine, ready| {
            engine.poll(
                &mut frames_of(frames, now_ns),
                Instant::from_nanos(now_ns),
                |deliveries| {
                    collect(deliveries, ready);
                },
            );
        })
    }

    /// Processes frames without ending the poll. Returns the deliveries.
    fn push(
        &mut self,
        py: Python<'_>,
        frames: Vec<PyBackedBytes>,
        #[pyo3(from_py_with = numbers::now_ns)] now_ns: u64,
    ) -> Vec<Delivery> {
        self.run(py, |engine, ready| {
            engine.push(
                &mut frames_of(frames, now_ns),
                Instant::from_nanos(now_ns),
                |deliveries| {
                    collect(deliveries, ready);
                },
            );
        })
    }

    /// Returns the time at which `on_timeout` is due, in nanoseconds; None while nothing is held beyond a
    /// poll.
    #[getter]
    fn poll_at(&self) -> Option<u64> {
        self.engine.poll_at().map(Instant::as_nanos)
    }

    /// Delivers the frames that have been held for as long as the policy allows.
    fn on_timeout(
        &mut self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::now_ns)] now_ns: u64,
    ) -> Vec<Delivery> {
        self.run(py, |engine, ready| {
            engine.on_timeout(Instant::from_nanos(now_ns), |deliveries| collect(deliveries, ready));
        })
    }

    /// Delivers all held frames.
    fn flush(
        &mut self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::now_ns)] now_ns: u64,
    ) -> Vec<Delivery> {
        self.run(py, |engine, ready| {
            engine.flush(Instant::from_nanos(now_ns), |deliveries| collect(deliveries, ready));
        })
    }

    /// Returns the totals of the engine, and how often each reason occurred.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, self.engine.counters())
    }
}

impl Engine {
    /// Runs `work` without holding the interpreter's lock.
    fn run(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut rxo_coalesce::Engine<Buffer>, &mut Vec<Delivery>) + Send,
    ) -> Vec<Delivery> {
        let engine = &mut self.engine;
        py.detach(|| {
            let mut ready = Vec::new();
            work(engine, &mut ready);
            ready
        })
    }
}

/// One delivery of an engine. See `rxo.Delivery`.
#[pyclass(frozen, module = "rxo")]
pub(crate) struct Delivery {
    kind: &'static str,
    data: Vec<u8>,
    frames: Vec<PyBackedBytes>,
    gso_size: Option<u16>,
}

#[pymethods]
impl Delivery {
    /// The kind: "frame" (unchanged), "aggregate" (several segments as one), or "acks" (the last of several
    /// pure ACKs).
    #[getter]
    const fn kind(&self) -> &'static str {
        self.kind
    }

    /// The packet that the host's stack gets, with complete checksums.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    /// The original frames of the delivery: the objects that were passed in, in order.
    #[getter]
    fn frames<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.frames.iter().map(|frame| Ok(frame.into_pyobject(py)?.into_any())).collect()
    }

    /// Payload bytes of each segment of an aggregate except the last; None for other deliveries.
    #[getter]
    const fn gso_size(&self) -> Option<u16> {
        self.gso_size
    }

    fn __repr__(&self) -> String {
        let (kind, bytes, frames) = (self.kind, self.data.len(), self.frames.len());
        format!("<rxo.Delivery: {kind} of {bytes} bytes from {frames} frames>")
    }
}

/// A bytes object of Python, which is read without a copy.
#[derive(Default)]
pub(crate) struct Buffer(Option<PyBackedBytes>);

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl FrameBuffer for Buffer {}

pub(crate) fn frames_of(frames: Vec<PyBackedBytes>, now_ns: u64) -> Vec<Frame<Buffer>> {
    let now = Instant::from_nanos(now_ns);
    frames.into_iter().map(|bytes| Frame::new(Buffer(Some(bytes)), now)).collect()
}

pub(crate) fn collect(mut deliveries: Deliveries<'_, Buffer>, ready: &mut Vec<Delivery>) {
    while let Some(taken) = deliveries.take_next() {
        let view = taken.view();
        let mut data = Vec::with_capacity(view.byte_len());
        view.for_each_slice(|piece| data.extend_from_slice(piece));
        let (kind, gso_size) = match view {
            View::Frame(_) => ("frame", None),
            View::Aggregate(aggregate) => ("aggregate", Some(aggregate.gso_size())),
            View::Acks(_) => ("acks", None),
        };
        let frames = taken.into_frames().filter_map(|frame| frame.bytes.0).collect();
        ready.push(Delivery { kind, data, frames, gso_size });
    }
}

fn counted<'py>(
    py: Python<'py>,
    counts: impl Iterator<Item = (&'static str, u64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (name, count) in counts.filter(|(_, count)| *count > 0) {
        all.set_item(name, count)?;
    }
    Ok(all)
}

/// Returns the configuration of an engine. `link` is the first header of the frames, "ethernet" or "ip".
///
/// # Errors
/// If `link` is invalid.
pub(crate) fn config(
    policy: Policy,
    link: &str,
    trust_checksums: bool,
    batch_frames: usize,
) -> PyResult<Config> {
    let link = match link {
        "ethernet" => LinkKind::Ethernet,
        "ip" => LinkKind::RawIp,
        other => return Err(usage(format!("link {other} is invalid: ethernet or ip"))),
    };
    let (form, seed) = (ChecksumForm::Complete, RandomState::new().hash_one(0));
    Ok(Config { link, trust_checksums, form, batch_frames, ..Config::new(policy, seed) })
}

/// Returns the totals in `counters`, and how often each reason occurred.
pub(crate) fn counters<'py>(py: Python<'py>, counters: &Counters) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let totals = [
        ("frames", counters.frames),
        ("deliveries", counters.deliveries),
        ("singles", counters.singles),
        ("aggregates", counters.aggregates),
        ("aggregated_segments", counters.aggregated_segments),
    ];
    for (name, value) in totals {
        all.set_item(name, value)?;
    }
    let bypassed = BypassReason::ALL.iter().map(|r| (r.name(), counters.bypassed(*r)));
    all.set_item("bypassed", counted(py, bypassed)?)?;
    let flushed = FlushReason::ALL.iter().map(|r| (r.name(), counters.flushed(*r)));
    all.set_item("flushed", counted(py, flushed)?)?;
    Ok(all)
}
