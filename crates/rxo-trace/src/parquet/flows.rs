//! A row for each flow. There may be millions, so the table is written in parts.

use super::table::Table;
use crate::report::{FlowReport, Report};

/// The flows of the report, in its order, in parts of [`PART`] rows.
pub(super) fn parts(report: &Report) -> impl Iterator<Item = Table> {
    report.flows.chunks(PART).map(|flows| part(report, flows))
}

/// A part of the table. Without flows, it still has all columns.
pub(super) fn part(report: &Report, flows: &[FlowReport]) -> Table {
    let count = |value: fn(&FlowReport) -> u64| flows.iter().map(value);
    let started_at_ns = report.traffic.started_at_ns;
    let instant = |value: fn(&FlowReport) -> u64| {
        flows.iter().map(move |flow| started_at_ns.saturating_add(value(flow)))
    };
    Table::default()
        .text("source", flows.iter().map(|flow| &flow.source))
        .text("destination", flows.iter().map(|flow| &flow.destination))
        .some_small("vlan", flows.iter().map(|flow| flow.vlan))
        .count("packets", count(|flow| flow.packets))
        .count("wire_bytes", count(|flow| flow.bytes))
        .count("payload_bytes", count(|flow| flow.payload_bytes))
        .count("data_segments", count(|flow| flow.data_segments))
        .count("pure_acks", count(|flow| flow.pure_acks))
        .count("deliveries", count(|flow| flow.deliveries))
        .count("aggregates", count(|flow| flow.aggregates))
        .count("aggregated_segments", count(|flow| flow.aggregated_segments))
        .count("first_ns", count(|flow| flow.first_ns))
        .count("last_ns", count(|flow| flow.last_ns))
        .instant("first_at", instant(|flow| flow.first_ns))
        .instant("last_at", instant(|flow| flow.last_ns))
}

/// Rows per part: enough for readers to skip by, and small enough to be in memory twice.
const PART: usize = 65_536;
