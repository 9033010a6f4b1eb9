//! Runs one measurement of the sender's side: builds the network for a way, runs one transfer, and removes the network.

use std::time::Duration;

use anyhow::Result;
use rxo_coalesce::Policy;
use rxo_console::numbers::ratio;
use rxo_device::middleware::ImpairmentSettings;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer, Window};
use rxo_testbed::{AckRate, CpuMeter, KernelGro, Lab, LabOptions};

use super::sample::{HostCpu, Sample};
use super::{Setup, Way};
use crate::losses::Losses;
use crate::stats::LEAST_BYTES;
use crate::through::{self, Manner};

/// Measures `way` once. Returns the sample.
///
/// # Errors
/// If the network cannot be built, a device cannot be opened, or the transfer breaks.
pub fn measure(way: Way, setup: &Setup) -> Result<Sample> {
    let Some(policy) = way.policy() else {
        let lab = Lab::direct_with(KernelGro::On, wire(setup))?;
        return send(&lab, Lab::HOST_INTERFACE, setup);
    };
    let lab = Lab::through_with(wire(setup))?;
    let policy = Policy { hold: setup.hold, ..policy };
    let manner = Manner { impair: moderated(setup.moderation), ..Manner::with(policy) };
    let through = through::start(&lab, manner, setup.cores.receiver)?;
    let sample = send(&lab, Lab::WIRE_INTERFACE, setup)?;
    let totals = through.finish()?;
    let (ring_drops, sink_drops) = (totals.nic_in.ring_drops, totals.host_out.dropped);
    Ok(Sample { losses: Losses { ring_drops, sink_drops, ..sample.losses }, ..sample })
}

/// Returns the impairments of the two directions: ACKs are gathered for the time `gather`. The direction of the data is
/// unimpaired: its GSO frames must stay whole, or the receiver would acknowledge more often.
fn moderated(gather: Duration) -> [Option<ImpairmentSettings>; 2] {
    let acks = ImpairmentSettings { gather, ..ImpairmentSettings::default() };
    [(gather > Duration::ZERO).then_some(acks), None]
}

/// Returns the options of the wire, which do not depend on the way of the ACKs. Each host's kernel processes
/// received frames on the core of that host.
fn wire(setup: &Setup) -> LabOptions {
    LabOptions {
        peer_core: setup.cores.sender,
        host_core: setup.cores.receiver,
        acks: setup.acks,
        ..LabOptions::default()
    }
}

/// Sends from the host to the peer, and measures after the warm-up. Returns the sample.
fn send(lab: &Lab, host_end: &str, setup: &Setup) -> Result<Sample> {
    let config = BulkConfig {
        connections: setup.connections,
        sender_core: setup.cores.receiver,
        receiver_core: setup.cores.sender,
        ..BulkConfig::default()
    };
    // With Linux's own ACK rate the peer also keeps Linux's windows, because full windows cause more ACKs.
    if setup.acks != AckRate::Default {
        limit_windows(lab, setup.connections)?;
    }
    let before = Counts::read(lab, host_end)?;
    let transfer = BulkTransfer::start(lab.host(), lab.peer(), lab.peer_address(), &config)?;
    let meter = meter(&transfer, setup);
    transfer.measure(setup.warm_up, &meter)?;
    let window = transfer.measure_at_least(setup.bulk, LEAST_BYTES, &meter)?;
    let report = transfer.stop()?;
    let after = Counts::read(lab, host_end)?;
    Ok(Sample {
        gbit_per_s: window.gbit_per_s(),
        cpu: host_cpu(&window),
        both_cpu_s_per_gb: window.cpu_s_per_gb(),
        segments: after.segments - before.segments,
        acks: after.acks - before.acks,
        ack_deliveries: after.deliveries - before.deliveries,
        losses: Losses {
            retransmissions: report.retransmitted_segments,
            wire_drops: after.wire_drops - before.wire_drops,
            ..Losses::default()
        },
        hash_ok: report.is_intact() && report.received_bytes > 0,
    })
}

/// Limits the receive windows of all connections together to less than a kernel's receive queue of 1,000 packets.
/// Otherwise queue overflows, and the SACKs that follow them, would dominate the measurement.
fn limit_windows(lab: &Lab, connections: usize) -> Result<()> {
    let most = (BUFFERS_BYTES / connections.max(1)).max(LEAST_BUFFER_BYTES);
    let first = most.min(FIRST_BUFFER_BYTES);
    Ok(lab.peer().set_sysctl("net.ipv4.tcp_rmem", &format!("4096 {first} {most}"))?)
}

fn meter(transfer: &BulkTransfer, setup: &Setup) -> CpuMeter {
    let meter = CpuMeter::new()
        .threads(SENDER, transfer.sender_threads())
        .threads(RECEIVER, transfer.receiver_threads());
    setup.cores.receiver.map_or(meter.clone(), |core| meter.core(core))
}

fn host_cpu(window: &Window) -> HostCpu {
    let per_gb = |time: Duration| ratio(time.as_secs_f64(), window.received_bytes as f64 / 1e9);
    let core = window.cpu.cores.first().copied();
    HostCpu {
        sender: per_gb(window.cpu.part(SENDER).unwrap_or_default()),
        rest: per_gb(window.cpu.rest),
        // With a single core the hosts cannot be separated, so all of `ksoftirqd` counts.
        ksoftirqd: per_gb(core.map_or(window.cpu.ksoftirqd, |core| core.ksoftirqd)),
        core_busy: core.map_or(0.0, |core| per_gb(core.busy)),
    }
}

/// Sum of the peer's receive buffers over all connections, in bytes. About half of a buffer is its window.
const BUFFERS_BYTES: usize = 2 << 20;
const LEAST_BUFFER_BYTES: usize = 32 * 1024;
/// Initial size of a receive buffer in bytes, Linux's default, from which windows grow.
const FIRST_BUFFER_BYTES: usize = 128 * 1024;
const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";

/// The counters of the kernels at one instant of the transfer.
struct Counts {
    segments: u64,
    acks: u64,
    deliveries: u64,
    wire_drops: u64,
}

impl Counts {
    fn read(lab: &Lab, host_end: &str) -> Result<Self> {
        let end = lab.host().interface(host_end).counters()?;
        Ok(Self {
            segments: lab.peer().interface(Lab::PEER_INTERFACE).counters()?.received_frames,
            acks: end.received_frames,
            deliveries: lab.host().stack_counters()?.deliveries,
            wire_drops: end.receive_drops,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moderation_gathers_what_arrives_and_nothing_else() {
        assert_eq!(moderated(Duration::ZERO), [None; 2]);
        let gather = Duration::from_micros(75);
        let gathered = ImpairmentSettings { gather, ..ImpairmentSettings::default() };
        assert_eq!(moderated(gather), [Some(gathered), None], "GSO frames of data stay whole");
    }
}
