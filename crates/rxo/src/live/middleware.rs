//! Middleware between the devices of a run and its workers.

use rxo_device::middleware::{ImpairedSource, Impairment, PacketLog, TracedSink, TracedSource};
use rxo_driver::{Device, DeviceSink, DeviceSource, clock};
use rxo_frame::Instant;

use crate::worker::Duplex;

/// Writes the frames that pass one point into a capture file.
#[cfg(feature = "capture")]
pub type FileLog = crate::tracer::TracePoint<std::fs::File>;

/// The log of a trace. Without the feature `capture` there is none.
#[cfg(not(feature = "capture"))]
pub type FileLog = rxo_device::middleware::NoLog;

/// What wraps the devices of a run. The default impairs nothing and writes nothing.
#[derive(Debug, Default)]
pub struct Middleware {
    /// Log what the nic gives, after its impairment, and what it takes; then each host's device. Those beyond the last log
    /// have none.
    pub logs: Vec<FileLog>,
    /// A worse network before frames from the nic reach the engine.
    pub impair_nic: Option<Impairment>,
    /// A worse network before frames from a host reach the worker.
    pub impair_host: Option<Impairment>,
}

/// The sink of a live device. One type whether it has a log or not, so that the worker and the host are compiled once.
pub(super) type LiveSink = TracedSink<DeviceSink, FileLog, Clock>;
pub(super) type Ends = Duplex<DeviceSource, LiveSink>;
type Clock = fn() -> Instant;

/// The ends of a device, with a log of what it gives and takes.
pub(super) fn ends(Device { source, sink }: Device, log: Option<FileLog>) -> Ends {
    let sink = TracedSink::new(sink, log.clone(), clock::now as Clock);
    let source = match log {
        None => source,
        Some(log) => Box::new(TracedSource::new(source, log)),
    };
    Duplex { source, sink }
}

/// Puts a worse network and a log around a device that has neither.
pub(super) fn wrap(device: Ends, impairment: Option<Impairment>, log: Option<FileLog>) -> Ends {
    let impairment = impairment.unwrap_or_else(Impairment::transparent);
    let impaired = ImpairedSource::new(device.source, impairment, clock::now as Clock);
    let traced = TracedSource::<DeviceSource, FileLog>::new(Box::new(impaired), log.clone());
    Duplex { source: Box::new(traced), sink: device.sink.with_log(log) }
}

/// A line for the user from the log or the device, at most once each.
pub(super) fn notice(sink: &mut LiveSink) -> Option<String> {
    let own = sink.log().and_then(PacketLog::take_notice);
    own.or_else(|| sink.inner_mut().take_notice())
}
