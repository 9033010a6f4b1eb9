//! A measurement of one way.

use serde::Serialize;

use crate::losses::Losses;

/// The figures of one bulk transfer from the host to the peer.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Goodput, in 10^9 bits per second.
    pub gbit_per_s: f64,
    /// Processor time of the sending host, in seconds per GB.
    pub cpu: HostCpu,
    /// Processor time of both hosts together, in seconds per GB.
    pub both_cpu_s_per_gb: f64,
    /// Segments that reached the peer.
    pub segments: u64,
    /// Frames that reached the host; all frames except those of handshakes and FINs are pure ACKs.
    pub acks: u64,
    /// Deliveries of the received frames to the host's IP layer, as the kernel counts them.
    pub ack_deliveries: u64,
    /// Losses of this measurement.
    pub losses: Losses,
    /// `true` if every byte arrived as it was sent.
    pub hash_ok: bool,
}

impl Sample {
    /// Returns the pure ACKs received per segment sent.
    pub fn acks_per_segment(&self) -> f64 {
        self.acks as f64 / self.segments.max(1) as f64
    }

    /// Returns the pure ACKs per delivery to the host's stack.
    pub fn acks_per_delivery(&self) -> f64 {
        self.acks as f64 / self.ack_deliveries.max(1) as f64
    }
}

/// Processor time of the sending host by thread, in seconds per 10^9 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostCpu {
    /// Time of the sending threads.
    pub sender: f64,
    /// Time of rxo's worker, if the way has one, and of the command itself.
    pub rest: f64,
    /// Time of the kernel thread that runs deferred work on this core.
    pub ksoftirqd: f64,
    /// All time in which the core was not idle, including interrupts that no thread is charged for and any
    /// other process.
    pub core_busy: f64,
}

impl HostCpu {
    /// Returns the time that is charged to threads.
    pub fn total(&self) -> f64 {
        self.sender + self.rest + self.ksoftirqd
    }
}
