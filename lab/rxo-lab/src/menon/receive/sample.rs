//! What one measurement came to.

use super::category::Breakdown;

/// One bulk transfer, in the time that was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bulk {
    pub(super) seconds: f64,
    /// Payload that applications have read.
    pub(super) bytes: u64,
    /// Frames with data that came to the host.
    pub(super) packets: u64,
    /// What connections were given for them.
    pub(super) deliveries: u64,
    /// Frames that the host sent: all are ACKs.
    pub(super) acks: u64,
    /// Processor time of the worker, in seconds.
    pub(super) worker_s: f64,
    /// Of the reading threads.
    pub(super) application_s: f64,
    /// Where the time went; `None` where no turn was timed.
    pub(super) breakdown: Option<Breakdown>,
    /// Segments that the senders sent again.
    pub(super) retransmissions: u64,
    /// Frames that the ring had no room for.
    pub(super) ring_drops: u64,
}

impl Bulk {
    pub(super) fn gbit_per_s(&self) -> f64 {
        self.gigabits() / self.seconds
    }

    /// What one core would receive if it did nothing else: the paper's CPU-scaled throughput.
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

/// One exchange of single bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) per_s: f64,
    pub(super) p50_us: f64,
}
