//! The table of flows: a row for each flow.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::Table;
use super::columns::Columns;
use crate::report::{FlowReport, Report};

/// Returns a table with a row for each flow, in the report's order.
///
/// # Errors
/// Returns an error only if this crate has a bug.
///
/// # Examples
/// ```
/// use rxo_trace::report::Report;
///
/// let flows = rxo_trace::tables::flows(&Report::default())?;
/// assert_eq!(flows.num_rows(), 0);
/// assert!(flows.schema().index_of("protocol").is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn flows(report: &Report) -> Table {
    part(report, &report.flows)
}

/// Returns the table of `flows`, which are some of the flows of the report. Without flows, the table still has
/// all columns.
pub(crate) fn part(report: &Report, flows: &[FlowReport]) -> Table {
    let count = |value: fn(&FlowReport) -> u64| flows.iter().map(value);
    let started_at_ns = report.traffic.started_at_ns;
    let instant = |value: fn(&FlowReport) -> u64| {
        flows.iter().map(move |flow| started_at_ns.saturating_add(value(flow)))
    };
    let sides = |text: fn(&FlowReport) -> &String| flows.iter().map(move |flow| side(text(flow)));
    let (source, destination) = (sides(|flow| &flow.source), sides(|flow| &flow.destination));
    Columns::default()
        .text("source_address", source.clone().map(|side| side.ip().to_string()))
        .small("source_port", source.map(|side| side.port()))
        .text("destination_address", destination.clone().map(|side| side.ip().to_string()))
        .small("destination_port", destination.map(|side| side.port()))
        .text("protocol", flows.iter().map(|flow| flow.protocol.name()))
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
        .text("first_file", flows.iter().map(|flow| &flow.first_file))
        .text("last_file", flows.iter().map(|flow| &flow.last_file))
        .finish()
}

/// Parses the address and the port of one side of a flow from the string in the report.
fn side(text: &str) -> SocketAddr {
    text.parse().unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0))
}
