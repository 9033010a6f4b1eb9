//! The transfers that run on every path: a bulk transfer that is measured while it runs, then a
//! request/response exchange. This module does not depend on the path.

use std::time::Duration;

use anyhow::Result;
use rxo_console::numbers::ratio;
use rxo_testbed::traffic::{
    BulkConfig, BulkTransfer, PingPongConfig, PingPongReport, Window, ping_pong,
};
use rxo_testbed::{CpuMeter, Lab};

use super::plan::Plan;
use super::sample::CpuParts;
use crate::losses::Losses;
use crate::stats::LEAST_BYTES;

/// The figures of a bulk transfer during the time in which it was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bulk {
    pub(super) gbit_per_s: f64,
    pub(super) cpu_s_per_gb: f64,
    /// Number of packets that the peer sent.
    pub(super) packets: u64,
    /// Number of deliveries to the host's IP layer that contained the peer's packets.
    pub(super) deliveries: u64,
    pub(super) cpu_parts: CpuParts,
    /// Lost and retransmitted packets, except those that rxo itself dropped.
    pub(super) losses: Losses,
    pub(super) hash_ok: bool,
}

impl Bulk {
    /// Returns the number of deliveries to the host's IP layer per 1,000 packets of the peer.
    pub(super) fn deliveries_per_1000_packets(&self) -> f64 {
        1_000.0 * ratio(self.deliveries as f64, self.packets as f64)
    }
}

/// Sends from the peer to the host, and measures after the warm-up. Returns the figures; the processor time includes
/// all threads of this process and `ksoftirqd`.
///
/// # Errors
/// If a connection cannot be opened, breaks, or stalls.
pub(super) fn bulk(lab: &Lab, host_end: &str, plan: &Plan) -> Result<Bulk> {
    let config = BulkConfig {
        connections: plan.connections,
        sender_core: plan.cores.sender,
        receiver_core: plan.cores.receiver,
        ..BulkConfig::default()
    };
    let before = Counts::read(lab, host_end)?;
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?;
    let meter = CpuMeter::new()
        .threads(SENDER, transfer.sender_threads())
        .threads(RECEIVER, transfer.receiver_threads());
    transfer.measure(plan.warm_up, &meter)?;
    let window = transfer.measure_at_least(plan.bulk, LEAST_BYTES, &meter)?;
    let report = transfer.stop()?;
    let after = Counts::read(lab, host_end)?;
    Ok(Bulk {
        gbit_per_s: window.gbit_per_s(),
        cpu_s_per_gb: window.cpu_s_per_gb(),
        packets: after.packets - before.packets,
        deliveries: after.deliveries - before.deliveries,
        cpu_parts: cpu_parts(&window),
        losses: Losses {
            retransmissions: report.retransmitted_segments,
            wire_drops: after.drops - before.drops,
            ..Losses::default()
        },
        hash_ok: report.is_intact() && report.received_bytes > 0,
    })
}

fn cpu_parts(window: &Window) -> CpuParts {
    let per_gb = |time: Duration| ratio(time.as_secs_f64(), window.received_bytes as f64 / 1e9);
    let part = |name| per_gb(window.cpu.part(name).unwrap_or_default());
    CpuParts {
        sender: part(SENDER),
        receiver: part(RECEIVER),
        rest: per_gb(window.cpu.rest),
        ksoftirqd: per_gb(window.cpu.ksoftirqd),
    }
}

const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";

/// Exchanges single bytes between peer and host, on the cores of the bulk transfer. Returns the round-trip times.
///
/// # Errors
/// If the connection cannot be opened, breaks, or stalls.
pub(super) fn request_response(lab: &Lab, plan: &Plan) -> Result<PingPongReport> {
    let config = PingPongConfig {
        duration: plan.request_response,
        client_core: plan.cores.sender,
        server_core: plan.cores.receiver,
    };
    Ok(ping_pong(lab.peer(), lab.host(), lab.host_address(), config)?)
}

/// The kernel's counters at one instant of the bulk transfer.
struct Counts {
    packets: u64,
    deliveries: u64,
    drops: u64,
}

impl Counts {
    fn read(lab: &Lab, host_end: &str) -> Result<Self> {
        let deliveries = lab.host().stack_counters()?.deliveries;
        let packets = lab.peer().interface(Lab::PEER_INTERFACE).counters()?.sent_frames;
        let drops = lab.host().interface(host_end).counters()?.receive_drops;
        Ok(Self { packets, deliveries, drops })
    }
}
