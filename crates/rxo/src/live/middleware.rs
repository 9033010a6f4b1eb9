//! The middleware between the devices of a run and its workers: packet logs and impairments.

use rxo_device::middleware::{ImpairedSource, Impairment, PacketLog, TracedSink, TracedSource};
use rxo_driver::{Device, DeviceSink, DeviceSource, clock};
use rxo_frame::Instant;

use crate::worker::Duplex;

/// A log that writes all packets which pass one point of the data path to a capture file.
#[cfg(feature = "capture")]
pub type FileLog = crate::tracer::TracePoint<std::fs::File>;

/// The packet log of a build without the feature `capture`, which does nothing.
#[cfg(not(feature = "capture"))]
pub type FileLog = rxo_device::middleware::NoLog;

/// The middleware around the devices of a run. The default neither impairs frames nor logs them.
#[derive(Debug, Default)]
pub struct Middleware {
    /// The packet logs. The first log belongs to the nic: it records frames from the nic (after impairment) and packets
    /// to the nic. Each further log belongs to the device of one host. Devices beyond the last log are not logged.
    pub logs: Vec<FileLog>,
    /// The impairment of frames from the nic, before they reach the engine; `None` for no impairment.
    pub impair_nic: Option<Impairment>,
    /// The impairment of frames from a host, before they reach the worker; `None` for no impairment.
    pub impair_host: Option<Impairment>,
}

/// The sink of a live device with an optional log. Its type is the same with and without a log, so that worker and host
/// are compiled once.
pub(super) type LiveSink = TracedSink<DeviceSink, FileLog, Clock>;
pub(super) type Ends = Duplex<DeviceSource, LiveSink>;
type Clock = fn() -> Instant;

/// Returns the source and the sink of a device. If there is a `log`, both record their packets in that log.
pub(super) fn ends(Device { source, sink }: Device, log: Option<FileLog>) -> Ends {
    let sink = TracedSink::new(sink, log.clone(), clock::now as Clock);
    let source = match log {
        None => source,
        Some(log) => Box::new(TracedSource::new(source, log)),
    };
    Duplex { source, sink }
}

/// Wraps `device`, which has no middleware yet, in an impairment and a log. Without an `impairment`, frames
/// pass unchanged.
pub(super) fn wrap(device: Ends, impairment: Option<Impairment>, log: Option<FileLog>) -> Ends {
    let impairment = impairment.unwrap_or_else(Impairment::transparent);
    let impaired = ImpairedSource::new(device.source, impairment, clock::now as Clock);
    let traced = TracedSource::<DeviceSource, FileLog>::new(Box::new(impaired), log.clone());
    Duplex { source: Box::new(traced), sink: device.sink.with_log(log) }
}

/// Returns the next line for the user, from the sink's log or from its device; each line is returned once.
/// `None` if there is none.
pub(super) fn notice(sink: &mut LiveSink) -> Option<String> {
    let own = sink.log().and_then(PacketLog::take_notice);
    own.or_else(|| sink.inner_mut().take_notice())
}
