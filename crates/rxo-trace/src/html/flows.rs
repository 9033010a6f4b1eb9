//! The page section on the flows with the most packets.

use super::table::{Cell, Section, Table};
use crate::figure::number;
use crate::report::{FlowReport, Protocol, Report};
use crate::words::{bytes, count, duration, plural};

/// Returns the section with a sortable table of the flows; `None` if there are no flows.
pub(super) fn section(report: &Report) -> Option<Section> {
    if report.flows.is_empty() {
        return None;
    }
    let (shown, all) = (report.flows.len() as u64, report.traffic.flows);
    let text = if shown < all {
        format!(
            "The {} with most packets of {}, each one direction.",
            plural(shown, "flow"),
            count(all)
        )
    } else {
        format!("{}, each one direction.", plural(shown, "flow"))
    };
    let rows = report.flows.iter().map(row).collect();
    Some(Section {
        id: "flows",
        title: "Flows",
        text: vec![text],
        code: Vec::new(),
        drawings: Vec::new(),
        tables: vec![Table::new(&HEADS, rows).sortable(PACKETS).shown("")],
    })
}

fn row(flow: &FlowReport) -> Vec<Cell> {
    let counted = |value: u64| Cell::number(count(value), value as f64);
    let lasted = flow.last_ns.saturating_sub(flow.first_ns) as f64;
    let per_delivery = flow.packets as f64 / flow.deliveries.max(1) as f64;
    let vlan = flow.vlan.map_or(String::new(), |vlan| format!(", VLAN {vlan}"));
    let protocol = if flow.protocol == Protocol::Udp { ", UDP" } else { "" };
    vec![
        Cell::text(format!("{} → {}{vlan}{protocol}", flow.source, flow.destination)),
        counted(flow.packets),
        counted(flow.deliveries),
        Cell::number(number(per_delivery), per_delivery),
        Cell::number(bytes(flow.bytes), flow.bytes as f64),
        counted(flow.data_segments),
        counted(flow.pure_acks),
        counted(flow.aggregates),
        counted(flow.aggregated_segments),
        Cell::number(duration(lasted), lasted),
    ]
}

const PACKETS: usize = 1;
const HEADS: [&str; 10] = [
    "source → destination",
    "#packets",
    "#deliveries",
    "#packets per delivery",
    "#bytes",
    "#with payload",
    "#pure ACKs",
    "#aggregates",
    "#packets in them",
    "#duration",
];
