//! What may stand between the devices of a run and its worker.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

use rxo_device::middleware::{ImpairedSource, Impairment, PacketLog, TracedSink, TracedSource};
use rxo_device::{FrameSink, FrameSource};
use rxo_driver::clock;
use rxo_frame::Instant;

use super::{Device, Event, Notices, Outcome, between};
use crate::tracer::TracePoint;
use crate::worker::{Duplex, Misfit, WorkerConfig};

/// What stands there. The default is nothing that changes or writes anything, but every frame is
/// copied once; who wants nothing at all calls [`run`](super::run).
#[derive(Debug, Default)]
pub struct Middleware {
    /// What the nic gives (after its impairment) and takes is written there.
    pub trace_nic: Option<TracePoint<File>>,
    /// What the host's device gives (after its impairment) and takes is written there.
    pub trace_host: Option<TracePoint<File>>,
    /// A worse network before frames from the nic reach the engine.
    pub impair_nic: Option<Impairment>,
    /// A worse network before frames from the host reach the worker.
    pub impair_host: Option<Impairment>,
}

/// As [`run`](super::run), with middleware.
///
/// # Errors
/// As [`run`](super::run).
pub fn run_through(
    (nic, host): (Device, Device),
    middleware: Middleware,
    config: WorkerConfig,
    stop: &AtomicBool,
    observe: impl FnMut(Event<'_>),
) -> Result<Outcome, Misfit> {
    let Middleware { trace_nic, trace_host, impair_nic, impair_host } = middleware;
    let (nic_layers, host_layers) = ((impair_nic, trace_nic), (impair_host, trace_host));
    match (nic, host) {
        (Device::Packet(nic), Device::Packet(host)) => {
            between(wrap(nic, nic_layers), wrap(host, host_layers), config, stop, observe)
        }
        (Device::Packet(nic), Device::Tap(host)) => {
            between(wrap(nic, nic_layers), wrap(host, host_layers), config, stop, observe)
        }
        (Device::Tap(nic), Device::Packet(host)) => {
            between(wrap(nic, nic_layers), wrap(host, host_layers), config, stop, observe)
        }
        (Device::Tap(nic), Device::Tap(host)) => {
            between(wrap(nic, nic_layers), wrap(host, host_layers), config, stop, observe)
        }
    }
}

type Clock = fn() -> Instant;
type Layers = (Option<Impairment>, Option<TracePoint<File>>);
type Wrapped<I, O> = Duplex<
    TracedSource<ImpairedSource<I, Clock>, TracePoint<File>>,
    TracedSink<O, TracePoint<File>, Clock>,
>;

fn wrap<I: FrameSource + AsFd, O: FrameSink>(
    device: Duplex<I, O>,
    (impairment, point): Layers,
) -> Wrapped<I, O> {
    let impairment = impairment.unwrap_or_else(Impairment::transparent);
    let source = ImpairedSource::new(device.source, impairment, clock::now as Clock);
    let sink = TracedSink::new(device.sink, point.clone(), clock::now as Clock);
    Duplex { source: TracedSource::new(source, point), sink }
}

impl<K: Notices> Notices for TracedSink<K, TracePoint<File>, Clock> {
    fn notice(&mut self) -> Option<String> {
        let own = self.log().and_then(PacketLog::take_notice);
        own.or_else(|| self.inner_mut().notice())
    }
}
