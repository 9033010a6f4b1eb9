//! The result of a bulk transfer.

use std::time::Duration;

use super::pattern::Mismatch;
use crate::cpu::CpuUse;

/// A finished transfer.
#[derive(Clone, Debug)]
pub struct BulkReport {
    /// Number of connections.
    pub connections: usize,
    /// Bytes that the senders wrote to the kernel.
    pub sent_bytes: u64,
    /// Bytes that the receivers read and compared with what was sent.
    pub received_bytes: u64,
    /// Time from the first byte to the last end of a stream.
    pub duration: Duration,
    /// Segments that the senders' kernels retransmitted.
    pub retransmitted_segments: u64,
    /// The first wrong byte of the first connection that had one.
    pub mismatch: Option<Mismatch>,
}

impl BulkReport {
    /// Returns true if every stream arrived complete and without a wrong byte.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.mismatch.is_none() && self.sent_bytes == self.received_bytes
    }
}

/// The received data and its cost between two instants of a running transfer.
#[derive(Clone, Debug)]
pub struct Window {
    /// Length of the window.
    pub duration: Duration,
    /// Payload bytes that the receivers read meanwhile.
    pub received_bytes: u64,
    /// Processor time used meanwhile.
    pub cpu: CpuUse,
}

impl Window {
    /// Returns the rate of received payload in Gbit/s.
    #[must_use]
    pub fn gbit_per_s(&self) -> f64 {
        self.received_bytes as f64 * 8.0 / 1e9 / self.duration.as_secs_f64()
    }

    /// Returns the processor seconds of everything that the meter counts, per 10^9 bytes of payload.
    #[must_use]
    pub fn cpu_s_per_gb(&self) -> f64 {
        self.cpu.total().as_secs_f64() / (self.received_bytes as f64 / 1e9)
    }
}
