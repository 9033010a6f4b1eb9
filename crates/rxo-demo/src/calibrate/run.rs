//! One measurement: a stream through rxo, and the processor time of the side that receives.
//!
//! The sender's thread is left out; with it what the wire costs (the sender's kernel does that on
//! the sender's core). What counts is rxo's worker, in whose system calls the host's stack handles
//! its deliveries and from which it sends its ACKs, and the thread that reads the stream and looks
//! at each byte once.

use anyhow::{Context, Result, bail};
use rxo_coalesce::Policy;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CpuMeter, Lab, LabOptions};

use super::plan::{Plan, Setting};
use crate::through::{self, Manner};

/// What one measurement came to, for each packet on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Deliveries to the host's IP layer.
    pub(super) deliveries: f64,
    /// Bytes on the wire.
    pub(super) wire_bytes: f64,
    /// Processor time, in nanoseconds.
    pub(super) ns: f64,
    /// How fast it was, in 10^9 bits of payload a second.
    pub(super) gbit_per_s: f64,
}

/// Measures `setting` once, in a network built for it.
///
/// # Errors
/// When the network cannot be built, or the transfer breaks or is not right.
pub(super) fn measure(setting: Setting, plan: &Plan) -> Result<Sample> {
    let Setting { mtu, max_segments } = setting;
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
    let before = counts(&lab)?;
    let window = transfer.measure(plan.window, &meter)?;
    let after = counts(&lab)?;
    let is_intact = transfer.stop()?.is_intact();
    through.finish()?;
    if !is_intact {
        bail!("bytes arrived that were not sent; please report this");
    }
    let packets = (after.packets - before.packets) as f64;
    if packets < FEWEST_PACKETS {
        bail!("only {packets} packets crossed the wire; try a larger --seconds");
    }
    let receiver = window.cpu.part(RECEIVER).context("the receiver was not measured")?;
    Ok(Sample {
        deliveries: (after.deliveries - before.deliveries) as f64 / packets,
        wire_bytes: window.received_bytes as f64 / packets + HEADER_BYTES,
        ns: (receiver + window.cpu.rest).as_nanos() as f64 / packets,
        gbit_per_s: window.gbit_per_s(),
    })
}

/// The kernel's counters at one instant.
struct Counts {
    packets: u64,
    deliveries: u64,
}

fn counts(lab: &Lab) -> Result<Counts> {
    let packets = lab.peer().interface(Lab::PEER_INTERFACE).counters()?.sent_frames;
    Ok(Counts { packets, deliveries: lab.host().stack_counters()?.deliveries })
}

const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";
/// Ethernet, IPv4, and TCP with timestamps.
const HEADER_BYTES: f64 = 14.0 + 20.0 + 32.0;
/// Fewer say nothing about the cost of one.
const FEWEST_PACKETS: f64 = 1_000.0;
