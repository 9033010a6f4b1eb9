//! The flows with the most packets, as text.

use rxo_console::numbers::{grouped, ratio};
use rxo_console::table::Table;

use super::units::{bytes, percent, time};
use crate::report::{FlowReport, Protocol, Report};

pub(super) fn text(report: &Report) -> Option<String> {
    if report.flows.is_empty() {
        return None;
    }
    let mut table = Table::new(&HEAD);
    for flow in &report.flows {
        table.row(row(flow, report.traffic.packets));
    }
    let (shown, all) = (report.flows.len() as u64, report.traffic.flows);
    Some(format!(
        "Flows with most packets ({} of {})\n\n{}",
        grouped(shown),
        grouped(all),
        table.render()
    ))
}

const HEAD: [&str; 9] = [
    "flow",
    "packets",
    "of all",
    "payload",
    "data",
    "pure ACKs",
    "eliminated",
    "pkt/delivery",
    "lasted",
];

fn row(flow: &FlowReport, all_packets: u64) -> [String; 9] {
    let FlowReport { packets, deliveries, .. } = *flow;
    let vlan = flow.vlan.map(|id| format!(" vlan {id}")).unwrap_or_default();
    let protocol = if flow.protocol == Protocol::Udp { " udp" } else { "" };
    [
        format!("{} > {}{vlan}{protocol}", flow.source, flow.destination),
        grouped(packets),
        percent(packets, all_packets),
        bytes(flow.payload_bytes),
        grouped(flow.data_segments),
        grouped(flow.pure_acks),
        grouped(packets - deliveries),
        format!("{:.2}", ratio(packets as f64, deliveries as f64)),
        time(flow.last_ns - flow.first_ns),
    ]
}
