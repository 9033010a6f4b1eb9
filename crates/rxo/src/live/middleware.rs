//! Middleware between the devices of a run and its worker.

use std::sync::atomic::AtomicBool;

use rxo_device::middleware::{ImpairedSource, Impairment, PacketLog, TracedSink, TracedSource};
use rxo_device::{FrameSink, FrameSource};
use rxo_driver::clock;
use rxo_frame::Instant;

use super::{Device, Event, Notices, Observer, Outcome, between, ends};
use crate::worker::{Duplex, Misfit, WorkerConfig};

/// The log of a trace: a place in a capture file.
#[cfg(feature = "capture")]
pub type FileLog = crate::tracer::TracePoint<std::fs::File>;

#[cfg(not(feature = "capture"))]
type FileLog = rxo_device::middleware::NoLog;

/// What wraps the devices of a run. The default impairs nothing and writes nothing, but copies
/// every frame once; [`run`](super::run) does not.
#[derive(Debug, Default)]
pub struct Middleware {
    /// Logs what the nic gives, after its impairment, and what it takes.
    #[cfg(feature = "capture")]
    pub trace_nic: Option<FileLog>,
    /// Logs what the host's device gives, after its impairment, and what it takes.
    #[cfg(feature = "capture")]
    pub trace_host: Option<FileLog>,
    /// A worse network before frames from the nic reach the engine.
    pub impair_nic: Option<Impairment>,
    /// A worse network before frames from the host reach the worker.
    pub impair_host: Option<Impairment>,
}

/// Runs a worker between two devices as [`run`](super::run) does, with middleware around both.
///
/// # Errors
/// As [`run`](super::run).
pub fn run_through(
    devices: (Device, Device),
    middleware: Middleware,
    config: WorkerConfig,
    stop: &AtomicBool,
    mut observe: impl FnMut(Event<'_>),
) -> Result<Outcome, Misfit> {
    run_observed(devices, middleware, config, stop, &mut observe)
}

fn run_observed(
    (nic, host): (Device, Device),
    middleware: Middleware,
    config: WorkerConfig,
    stop: &AtomicBool,
    observe: Observer<'_>,
) -> Result<Outcome, Misfit> {
    #[cfg(feature = "capture")]
    let Middleware { trace_nic, trace_host, impair_nic, impair_host } = middleware;
    #[cfg(not(feature = "capture"))]
    let Middleware { impair_nic, impair_host } = middleware;
    #[cfg(not(feature = "capture"))]
    let (trace_nic, trace_host) = (None::<FileLog>, None::<FileLog>);
    let nic = wrap(ends(nic), (impair_nic, trace_nic));
    let host = wrap(ends(host), (impair_host, trace_host));
    between(nic, host, config, stop, observe)
}

pub(super) type Clock = fn() -> Instant;
pub(super) type Layers<L> = (Option<Impairment>, Option<L>);
pub(super) type Wrapped<I, O, L> =
    Duplex<TracedSource<ImpairedSource<I, Clock>, L>, TracedSink<O, L, Clock>>;

pub(super) fn wrap<I: FrameSource<Buffer: From<Vec<u8>>>, O: FrameSink, L: PacketLog + Clone>(
    device: Duplex<I, O>,
    (impairment, log): Layers<L>,
) -> Wrapped<I, O, L> {
    let impairment = impairment.unwrap_or_else(Impairment::transparent);
    let source = ImpairedSource::new(device.source, impairment, clock::now as Clock);
    let sink = TracedSink::new(device.sink, log.clone(), clock::now as Clock);
    Duplex { source: TracedSource::new(source, log), sink }
}

impl<K: Notices, L: PacketLog> Notices for TracedSink<K, L, Clock> {
    fn notice(&mut self) -> Option<String> {
        let own = self.log().and_then(PacketLog::take_notice);
        own.or_else(|| self.inner_mut().notice())
    }
}
