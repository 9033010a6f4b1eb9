//! What is sent over every path: a bulk transfer that is measured while it runs, then a
//! request/response exchange. The same for all of them; nothing here knows which path it is.

use std::fs;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use rxo_console::numbers::ratio;
use rxo_lab::traffic::{
    BulkConfig, BulkTransfer, PingPongConfig, PingPongReport, Window, ping_pong,
};
use rxo_lab::{CpuMeter, Lab};

use super::plan::Plan;
use super::sample::CpuParts;
use crate::stats::LEAST_BYTES;

/// What the bulk transfer came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bulk {
    pub(super) gbit_per_s: f64,
    pub(super) cpu_s_per_gb: f64,
    /// Packets that the peer sent.
    pub(super) packets: u64,
    /// What the host's IP layer was given for them.
    pub(super) deliveries: u64,
    pub(super) cpu_parts: CpuParts,
    pub(super) retransmissions: u64,
    /// Frames that the kernel dropped at the host's end of the wire.
    pub(super) wire_drops: u64,
    pub(super) hash_ok: bool,
}

impl Bulk {
    /// What the host's IP layer was given for 1,000 packets.
    pub(super) fn deliveries_per_1000_packets(&self) -> f64 {
        1_000.0 * ratio(self.deliveries as f64, self.packets as f64)
    }
}

/// Sends from the peer to the host, and measures after the warm-up. The processor time is of
/// all threads of this process and of `ksoftirqd`.
///
/// # Errors
/// When a connection does not come about, breaks, or stands still.
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
        retransmissions: report.retransmitted_segments,
        wire_drops: after.drops - before.drops,
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

/// One byte there and back, with peer and host on the cores of the bulk transfer.
///
/// # Errors
/// When the connection does not come about, breaks, or stands still.
pub(super) fn request_response(lab: &Lab, plan: &Plan) -> Result<PingPongReport> {
    let config = PingPongConfig {
        duration: plan.request_response,
        client_core: plan.cores.sender,
        server_core: plan.cores.receiver,
    };
    Ok(ping_pong(lab.peer(), lab.host(), lab.host_address(), config)?)
}

/// The kernel's counters at one instant.
struct Counts {
    packets: u64,
    deliveries: u64,
    drops: u64,
}

impl Counts {
    fn read(lab: &Lab, host_end: &str) -> Result<Self> {
        let text = lab.host().run(|| fs::read_to_string(SNMP))?;
        let text = text.with_context(|| format!("cannot read {SNMP} of the host"))?;
        let deliveries = ip_in_receives(&text)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
            .with_context(|| format!("{SNMP} has no InReceives; this kernel is unknown"))?;
        let packets = lab.peer().interface(Lab::PEER_INTERFACE).counters()?.sent_frames;
        let drops = lab.host().interface(host_end).counters()?.receive_drops;
        Ok(Self { packets, deliveries, drops })
    }
}

/// Not `/proc/net`: that is the main thread's namespace, whoever asks.
const SNMP: &str = "/proc/thread-self/net/snmp";

/// How many packets the IP layer was given. What the kernel or rxo has coalesced is one of them;
/// frames for other hosts are none.
fn ip_in_receives(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Ip:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let column = names.split_whitespace().position(|name| name == "InReceives")?;
    values.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_is_found_by_its_name() {
        let text = "Ip: Forwarding DefaultTTL InReceives InHdrErrors\nIp: 2 64 4711 0\n\
                    Icmp: InMsgs InReceives\nIcmp: 1 2\n";
        assert_eq!(ip_in_receives(text), Some(4711));
        assert_eq!(ip_in_receives("Ip: Forwarding\nIp: 2\n"), None);
        assert_eq!(ip_in_receives(""), None);
    }
}
