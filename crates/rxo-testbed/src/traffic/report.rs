//! The result of a bulk transfer.

use std::time::Duration;

use super::pattern::Mismatch;
use crate::cpu::CpuUse;

/// The totals of a finished bulk transfer.
#[derive(Clone, Debug)]
pub struct BulkReport {
    /// The number of connections.
    pub connections: usize,
    /// The number of bytes that the senders wrote to the kernel.
    pub sent_bytes: u64,
    /// The number of bytes that the receivers read, and compared with the bytes that were sent.
    pub received_bytes: u64,
    /// The time from the first byte to the end of the last stream.
    pub duration: Duration,
    /// The number of segments that the kernels of the senders retransmitted.
    pub retransmitted_segments: u64,
    /// The first wrong byte of the first connection that received a wrong byte; `None` if no byte was wrong.
    pub mismatch: Option<Mismatch>,
}

impl BulkReport {
    /// Returns `true` if every stream arrived complete and without a wrong byte.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.mismatch.is_none() && self.sent_bytes == self.received_bytes
    }
}

/// The data received between two instants of a running transfer, and its cost in processor time.
#[derive(Clone, Debug)]
pub struct Window {
    /// The time between the two instants.
    pub duration: Duration,
    /// The number of payload bytes that the receivers read between the two instants.
    pub received_bytes: u64,
    /// The processor time used between the two instants.
    pub cpu: CpuUse,
}

impl Window {
    /// Returns the rate of received payload in Gbit/s.
    #[must_use]
    pub fn gbit_per_s(&self) -> f64 {
        self.received_bytes as f64 * 8.0 / 1e9 / self.duration.as_secs_f64()
    }

    /// Returns the processor time of everything that the meter counts, in seconds per 10^9 bytes of payload.
    #[must_use]
    pub fn cpu_s_per_gb(&self) -> f64 {
        self.cpu.total().as_secs_f64() / (self.received_bytes as f64 / 1e9)
    }
}
