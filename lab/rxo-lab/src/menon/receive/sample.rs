//! The result of one measurement.

use super::category::Breakdown;

/// A bulk transfer, during the measured time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bulk {
    pub(super) seconds: f64,
    /// Payload bytes that applications have read.
    pub(super) bytes: u64,
    /// Data frames that reached the host.
    pub(super) packets: u64,
    /// Deliveries of the received frames to connections.
    pub(super) deliveries: u64,
    /// Frames that the host sent, all of them ACKs.
    pub(super) acks: u64,
    /// Processor time of the worker, in seconds.
    pub(super) worker_s: f64,
    /// Processor time of the reading threads, in seconds.
    pub(super) application_s: f64,
    /// Processor time by category; `None` if no turn was timed.
    pub(super) breakdown: Option<Breakdown>,
    /// Segments that the senders retransmitted.
    pub(super) retransmissions: u64,
    /// Frames dropped because the ring was full.
    pub(super) ring_drops: u64,
}

impl Bulk {
    pub(super) fn gbit_per_s(&self) -> f64 {
        self.gigabits() / self.seconds
    }

    /// Returns the rate that one fully used core would receive: the paper's CPU-scaled throughput.
    pub(super) fn scaled_gbit_per_s(&self) -> f64 {
        rxo_console::numbers::ratio(self.gigabits(), self.cpu_s())
    }

    pub(super) fn ns_per_packet(&self) -> f64 {
        rxo_console::numbers::ratio(self.cpu_s() * 1e9, self.packets as f64)
    }

    fn cpu_s(&self) -> f64 {
        self.worker_s + self.application_s
    }

    fn gigabits(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e9
    }
}

/// An exchange of single bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) per_s: f64,
    pub(super) p50_us: f64,
}
