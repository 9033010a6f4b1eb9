//! Compares rates through `rxo run` with those of the kernel alone: TCP in an overlay, and plain TCP over the
//! same wire, which shows the overlay's share of the cost.
//!
//! Rounds are interleaved, and a row is the median of its rounds. No rate makes the test fail; it asserts
//! only that every byte is right and nothing was lost.

use std::net::IpAddr;

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{KernelGro, Lab, LabOptions, Namespace};
use serde_json::Value;

use super::{Overlay, PORTS, assert_nothing_was_lost, totals};
use crate::setup::{self, SetUp};

/// The traffic of a table row, and its direction.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// `None` for plain TCP.
    overlay: Option<Overlay>,
    to_host: bool,
}

/// The result of one transfer.
struct Measured {
    gbit_per_s: f64,
    retransmitted: u64,
    /// rxo's totals; `None` without rxo.
    totals: Option<Value>,
}

/// The MTU of the overlay. It leaves space for the headers of a VXLAN over IPv6; the kernel sets this value
/// for a tunnel over a known interface. With a larger MTU the first large sends are fragmented.
const MTU: u32 = 1_430;

const ROUNDS: usize = 5;
const BYTES: u64 = 60_000_000;

pub(super) fn beside_the_kernel_alone() {
    let overlays = [None].into_iter().chain(Overlay::all(PORTS[0]).map(Some));
    let rows: Vec<_> = overlays
        .flat_map(|overlay| [true, false].map(|to_host| Row { overlay, to_host }))
        .collect();
    let mut measured: Vec<_> = rows.iter().map(|_| (Vec::new(), Vec::new())).collect();
    for _ in 0..ROUNDS {
        for (row, (kernel, rxo)) in rows.iter().zip(&mut measured) {
            kernel.push(row.without_rxo());
            rxo.push(row.with_rxo());
        }
    }
    eprintln!("| TCP | kernel, Gbit/s | rxo, Gbit/s | rxo/kernel |");
    eprintln!("|---|---|---|---|");
    for (row, (kernel, rxo)) in rows.iter().zip(&measured) {
        row.print_rates(kernel, rxo);
    }
    eprintln!("\n| TCP | nic -> host | host -> nic | retransmitted by the kernel, with rxo |");
    eprintln!("|---|---|---|---|");
    for (row, (kernel, rxo)) in rows.iter().zip(&measured) {
        row.print_counts(kernel, rxo);
    }
}

impl Row {
    fn with_rxo(self) -> Measured {
        let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), "");
        let measured = self.measure(&lab);
        let totals = totals(rxo);
        assert_nothing_was_lost(&totals);
        Measured { totals: Some(totals), ..measured }
    }

    fn without_rxo(self) -> Measured {
        self.measure(&Lab::direct(KernelGro::On).unwrap())
    }

    fn measure(self, lab: &Lab) -> Measured {
        let ends: [IpAddr; 2] = match self.overlay {
            None => [lab.peer_address(), lab.host_address()],
            Some(overlay) => {
                overlay.connect(lab);
                for namespace in [lab.peer(), lab.host()] {
                    namespace.interface("overlay0").set_mtu(MTU).unwrap();
                }
                Overlay::addresses(false)
            }
        };
        match self.to_host {
            true => transfer((lab.peer(), lab.host()), ends[1]),
            false => transfer((lab.host(), lab.peer()), ends[0]),
        }
    }

    fn name(self) -> String {
        let way = if self.to_host { "to the host" } else { "from the host" };
        let Some(overlay) = self.overlay else { return format!("plain, {way}") };
        let version = if overlay.is_outer_v6 { "IPv6" } else { "IPv4" };
        let sum = if overlay.has_checksum { " with checksum" } else { "" };
        format!("VXLAN over {version}{sum}, {way}")
    }

    fn print_rates(self, kernel: &[Measured], rxo: &[Measured]) {
        let rates = |all: &[Measured]| all.iter().map(|one| one.gbit_per_s).collect::<Vec<_>>();
        let (kernel, rxo) = (rates(kernel), rates(rxo));
        let ratios = kernel.iter().zip(&rxo).map(|(kernel, rxo)| rxo / kernel).collect();
        let [kernel, rxo, ratios] = [kernel, rxo, ratios].map(spread);
        eprintln!("| {} | {kernel} | {rxo} | {ratios} |", self.name());
    }

    fn print_counts(self, kernel: &[Measured], rxo: &[Measured]) {
        let count = |side: &str, what: &str| {
            let counts = rxo.iter().filter_map(|one| one.totals.as_ref()?[side][what].as_f64());
            counts.sum::<f64>()
        };
        let side = |side: &str, what: &str| {
            let (packets, bytes) = (count(side, what), count(side, "bytes"));
            format!("{:.0}k of {:.0} B", packets / 1e3, bytes / packets.max(1.0))
        };
        let way = |from, to| format!("{} -> {}", side(from, "packets"), side(to, "deliveries"));
        let retransmitted = |all: &[Measured]| all.iter().map(|one| one.retransmitted).sum::<u64>();
        eprintln!(
            "| {} | {} | {} | {}, {} |",
            self.name(),
            way("nic_in", "host_out"),
            way("host_in", "nic_out"),
            retransmitted(kernel),
            retransmitted(rxo),
        );
    }
}

fn transfer((from, to): (&Namespace, &Namespace), address: IpAddr) -> Measured {
    let config = BulkConfig { bytes_per_connection: Some(BYTES), ..BulkConfig::default() };
    let report = BulkTransfer::start(from, to, address, &config).unwrap().wait().unwrap();
    assert!(report.is_intact(), "{report:?}");
    let retransmitted = from.stack_counters().unwrap().retransmitted_segments;
    let gbit_per_s = report.received_bytes as f64 * 8e-9 / report.duration.as_secs_f64();
    Measured { gbit_per_s, retransmitted, totals: None }
}

/// Formats the median with minimum and maximum.
pub(super) fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (least, most) = (values[0], values[values.len() - 1]);
    format!("{:.2} ({least:.2}-{most:.2})", values[values.len() / 2])
}
