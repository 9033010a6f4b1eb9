//! Runs one measurement: a stream through rxo, and the processor time of the receiving side.
//!
//! The processor time of two threads is counted. The first thread is rxo's worker; the host's stack processes
//! deliveries and sends ACKs in the worker's system calls. The second is the reader, which reads every byte of
//! the stream once. The sender's thread is not counted, and neither is the cost of the wire, which the sender's
//! kernel pays on the sender's core.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use rxo_coalesce::Policy;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CpuMeter, Lab, LabOptions};

use super::plan::{Plan, Setting};
use super::window::{Counted, Counts, Reserve};
use crate::through::{self, Manner};

/// The result of one measurement, per packet on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The number of packets on the wire.
    pub(super) packets: u64,
    /// Number of deliveries to the host's IP layer per packet.
    pub(super) deliveries: f64,
    /// Number of bytes on the wire per packet.
    pub(super) wire_bytes: f64,
    /// Number of times per packet that the kernel's polling thread slept and was woken; 0 where rxo polls.
    pub(super) wakes: f64,
    /// Mean idle time before such a sleep ended, in nanoseconds; 0 where rxo polls.
    pub(super) idle_ns: f64,
    /// Processor time of the receiving side per packet, in nanoseconds.
    pub(super) ns: f64,
    /// Goodput, in 10^9 bits of payload per second.
    pub(super) gbit_per_s: f64,
    /// The time of the windows before, which had too few packets.
    pub(super) waited: Duration,
}

/// Measures `setting` once, in a network that is built for it. Returns the sample.
///
/// # Errors
/// If the network cannot be built, or the transfer fails or delivers wrong bytes.
pub(super) fn measure(setting: Setting, plan: &Plan, reserve: &Reserve) -> Result<Sample> {
    let Setting { mtu, max_segments, .. } = setting;
    let options = LabOptions { mtu, peer_core: plan.cores.sender, ..LabOptions::default() };
    let lab = Lab::through_with(options)?;
    let policy = Policy { max_segments, ..Policy::linux_gro() };
    let through = through::start(&lab, Manner::with(policy).mtu(mtu), plan.cores.receiver)?;
    let config = BulkConfig {
        sender_core: plan.cores.sender,
        receiver_core: plan.cores.receiver,
        ..BulkConfig::default()
    };
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?;
    let meter = CpuMeter::new()
        .threads(SENDER, transfer.sender_threads())
        .threads(RECEIVER, transfer.receiver_threads());
    transfer.measure(plan.warm_up, &meter)?;
    let counted = reserve.filled(plan.window, FEWEST_PACKETS, |time| {
        Counted::of(&transfer, &meter, time, || Counts::now(&lab))
    });
    let is_intact = transfer.stop()?.is_intact();
    through.finish()?;
    if !is_intact {
        bail!("bytes arrived that were not sent; please report this");
    }
    let counted = counted?;
    let cpu = &counted.window.cpu;
    let receiver = cpu.part(RECEIVER).context("the receiver was not measured")?;
    Ok(counted.sample(receiver + cpu.rest))
}

const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";
/// The number of packets below which no cost per packet is computed.
const FEWEST_PACKETS: u64 = 1_000;
