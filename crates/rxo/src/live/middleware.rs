//! Middleware between the devices of a run and its workers.

use rxo_device::middleware::{ImpairedSource, Impairment, PacketLog, TracedSink, TracedSource};
use rxo_driver::{Device, DeviceSink, DeviceSource, clock};
use rxo_frame::Instant;

use crate::worker::Duplex;

/// Logs the frames that pass one point to a capture file.
#[cfg(feature = "capture")]
pub type FileLog = crate::tracer::TracePoint<std::fs::File>;

/// The log of a trace. Without the feature `capture` it does nothing.
#[cfg(not(feature = "capture"))]
pub type FileLog = rxo_device::middleware::NoLog;

/// The middleware around the devices of a run. The default impairs and logs nothing.
#[derive(Debug, Default)]
pub struct Middleware {
    /// Logs, in order: for the nic, frames from it after impairment and packets to it; then the same for each
    /// host's device. Devices beyond the last log have none.
    pub logs: Vec<FileLog>,
    /// Impairs frames from the nic before they reach the engine.
    pub impair_nic: Option<Impairment>,
    /// Impairs frames from a host before they reach the worker.
    pub impair_host: Option<Impairment>,
}

/// The sink of a live device. The type is the same with and without a log, so that worker and host are
/// compiled once.
pub(super) type LiveSink = TracedSink<DeviceSink, FileLog, Clock>;
pub(super) type Ends = Duplex<DeviceSource, LiveSink>;
type Clock = fn() -> Instant;

/// Returns source and sink of a device, with an optional log of the packets in both directions.
pub(super) fn ends(Device { source, sink }: Device, log: Option<FileLog>) -> Ends {
    let sink = TracedSink::new(sink, log.clone(), clock::now as Clock);
    let source = match log {
        None => source,
        Some(log) => Box::new(TracedSource::new(source, log)),
    };
    Duplex { source, sink }
}

/// Adds an impairment and a log to a device that has neither.
pub(super) fn wrap(device: Ends, impairment: Option<Impairment>, log: Option<FileLog>) -> Ends {
    let impairment = impairment.unwrap_or_else(Impairment::transparent);
    let impaired = ImpairedSource::new(device.source, impairment, clock::now as Clock);
    let traced = TracedSource::<DeviceSource, FileLog>::new(Box::new(impaired), log.clone());
    Duplex { source: Box::new(traced), sink: device.sink.with_log(log) }
}

/// Returns a line for the user from the log or the device, each line once; `None` if there is none.
pub(super) fn notice(sink: &mut LiveSink) -> Option<String> {
    let own = sink.log().and_then(PacketLog::take_notice);
    own.or_else(|| sink.inner_mut().take_notice())
}
