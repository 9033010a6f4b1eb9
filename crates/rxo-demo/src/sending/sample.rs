//! One measurement of one way.

use serde::Serialize;

use crate::losses::Losses;

/// The figures of one bulk transfer from the host to the peer.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Goodput.
    pub gbit_per_s: f64,
    /// Processor time of the sending host.
    pub cpu: HostCpu,
    /// Processor time of both hosts together.
    pub both_cpu_s_per_gb: f64,
    /// Segments that reached the peer.
    pub segments: u64,
    /// Frames that reached the host: pure ACKs, but for the handshakes and the ends.
    pub acks: u64,
    /// What the host's IP layer was given for them, as the kernel counts it.
    pub ack_deliveries: u64,
    /// Losses of this measurement.
    pub losses: Losses,
    /// Whether every byte arrived as it was sent.
    pub hash_ok: bool,
}

impl Sample {
    /// Pure ACKs that came for each segment sent.
    pub fn acks_per_segment(&self) -> f64 {
        self.acks as f64 / self.segments.max(1) as f64
    }

    /// Pure ACKs in each delivery to the host's stack.
    pub fn acks_per_delivery(&self) -> f64 {
        self.acks as f64 / self.ack_deliveries.max(1) as f64
    }
}

/// Whose threads used the sending host's core, in seconds for 10^9 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostCpu {
    /// The threads that send.
    pub sender: f64,
    /// rxo's worker, where there is one, and what the command itself does.
    pub rest: f64,
    /// The kernel's thread for work put off on this core.
    pub ksoftirqd: f64,
    /// All the time in which the core was not idle: interrupts that no thread is charged for, and
    /// whatever else ran on it, included.
    pub core_busy: f64,
}

impl HostCpu {
    /// Everything that stands to a thread's account.
    pub fn total(&self) -> f64 {
        self.sender + self.rest + self.ksoftirqd
    }
}
