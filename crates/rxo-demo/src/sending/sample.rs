//! The figures of one measurement of a way of sending ACKs.

use serde::Serialize;

use crate::losses::Losses;

/// The figures of one bulk transfer from the host to the peer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Goodput, in 10^9 bits of payload per second.
    pub gbit_per_s: f64,
    /// Processor time of the sending host, in seconds per 10^9 bytes.
    pub cpu: HostCpu,
    /// Processor time of both hosts together, in seconds per 10^9 bytes.
    pub both_cpu_s_per_gb: f64,
    /// Number of data segments that reached the peer.
    pub segments: u64,
    /// Number of frames that reached the sending host; all of them are pure ACKs, except those of handshakes
    /// and FINs.
    pub acks: u64,
    /// Number of times that frames were delivered to the sending host's IP layer, as its kernel counts them.
    pub ack_deliveries: u64,
    /// Lost and retransmitted packets of this measurement.
    pub losses: Losses,
    /// `true` if every byte arrived as it was sent.
    pub hash_ok: bool,
}

impl Sample {
    /// Returns the number of pure ACKs received per segment sent.
    pub fn acks_per_segment(&self) -> f64 {
        self.acks as f64 / self.segments.max(1) as f64
    }

    /// Returns the number of pure ACKs per delivery to the sending host's stack.
    pub fn acks_per_delivery(&self) -> f64 {
        self.acks as f64 / self.ack_deliveries.max(1) as f64
    }
}

/// Processor time of the sending host by thread, in seconds per 10^9 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostCpu {
    /// Processor time of the sending threads.
    pub sender: f64,
    /// Processor time of rxo's worker, if the way of the ACKs includes a worker, and of the command itself.
    pub rest: f64,
    /// Processor time of the kernel thread that runs deferred work on the sending host's core.
    pub ksoftirqd: f64,
    /// Time in which the sending host's core was not idle, including other processes, and interrupts that are
    /// not charged to any thread.
    pub core_busy: f64,
}

impl HostCpu {
    /// Returns the processor time that is charged to threads.
    pub fn total(&self) -> f64 {
        self.sender + self.rest + self.ksoftirqd
    }
}
