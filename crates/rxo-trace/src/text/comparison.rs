//! The comparison of several policies, as text.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;

use super::units::{bytes, time};
use crate::study::compare;
use crate::words::plural;

/// Formats the table of a comparison as text, without a line end after the last line. Allocates.
#[must_use]
pub fn comparison(compared: &compare::ComparisonTable) -> String {
    let cores = format!("cores at {} Gbit/s", compared.rate_gbit_per_s);
    let mut table = Table::new(&[
        "policy",
        "eliminated",
        "of 10,000",
        "pkt/delivery",
        "hold p50",
        "hold p99",
        "copied",
        "late segments",
        cores.as_str(),
    ]);
    for row in &compared.policies {
        table.row([
            row.policy.clone(),
            grouped(row.eliminated),
            format!("{:.0}", row.eliminated_per_10_000),
            format!("{:.2}", row.packets_per_delivery),
            time(row.hold_ns.p50),
            time(row.hold_ns.p99),
            bytes(row.copied_bytes),
            grouped(row.late_segments),
            format!("{:.2}", row.cores),
        ]);
    }
    let partial = compared.partial.as_ref().map(|why| format!("\nPARTIAL: {why}"));
    format!(
        "{}, {}; poll {}\n\n{}\n\nhold: from arrival to delivery. copied: payload of aggregates, by a sink that \
         cannot gather.\nlate segments: behind later text of their flow. Costs: {}.{}",
        plural(compared.packets, "packet"),
        bytes(compared.bytes),
        compared.poll,
        table.render(),
        compared.costs_from,
        partial.unwrap_or_default()
    )
}
