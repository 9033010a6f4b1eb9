//! The demo's result: a table and a sentence for people, JSON for machines.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;
use serde::Serialize;

use super::path::Path;
use super::plan::Plan;
use super::row::Row;
use super::sentence::sentence;
use crate::machine::Machine;
use crate::stats::Spread;
use crate::wrap::wrapped;

/// Everything the demo found out.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) machine: Machine,
    pub(crate) setup: Setup,
    pub(crate) sentence: String,
}

/// What was measured, so that it can be measured again.
#[derive(Debug, Serialize)]
pub(crate) struct Setup {
    pub(crate) rounds: usize,
    pub(crate) bulk_s: f64,
    pub(crate) request_response_s: f64,
    pub(crate) mtu: u32,
    pub(crate) sender_core: Option<usize>,
    pub(crate) receiver_core: Option<usize>,
    /// The policy of the path `rxo`, with every field.
    pub(crate) policy: serde_json::Map<String, serde_json::Value>,
}

impl Report {
    /// What these rows, measured as planned on this machine, say.
    pub(crate) fn new(rows: Vec<Row>, machine: Machine, plan: &Plan) -> Self {
        let sentence = sentence(&rows);
        Self { rows, machine, setup: plan.setup(), sentence }
    }

    /// Whether every byte of every transfer arrived as it was sent.
    pub(crate) fn is_intact(&self) -> bool {
        self.rows.iter().all(|row| row.hash_ok)
    }

    /// The table, what its columns mean, the machine, and the sentence.
    pub(crate) fn text(&self) -> String {
        let mut table = Table::new(&HEAD);
        for row in &self.rows {
            table.row(cells(row));
        }
        format!(
            "{}\n\n{}\n{}\n\n{}",
            table.render(),
            wrapped(&self.legend()),
            self.machine,
            wrapped(&self.sentence)
        )
    }

    /// What was measured, and what the columns say.
    fn legend(&self) -> String {
        let Setup { rounds, bulk_s, .. } = self.setup;
        let connections = self.rows.first().map_or(0, |row| row.connections);
        let count = |number: usize, what: &str| {
            format!("{number} {what}{}", if number == 1 { "" } else { "s" })
        };
        format!(
            "Medians of {} of {bulk_s} s with {}, least and most in brackets. deliv/1000: \
             deliveries to the host's stack for 1,000 packets. held: microseconds from arrival to \
             delivery, p50/p99. rr: one byte there and back. resent: by the peer. lost: in rxo's \
             ring, at the wire's end, or not taken by the host. Both in all rounds together.",
            count(rounds, "round"),
            count(connections, "connection"),
        )
    }
}

const HEAD: [&str; 11] = [
    "path",
    "Gbit/s",
    "CPU s/GB",
    "deliv/1000",
    "pkt/aggr",
    "held",
    "rr/s",
    "rr p50 us",
    "resent",
    "lost",
    "bytes",
];

fn cells(row: &Row) -> Vec<String> {
    let held = match (row.hold_p50_us, row.hold_p99_us) {
        (Some(p50), Some(p99)) if row.path == Path::Rxo => format!("{p50:.0}/{p99:.0}"),
        _ => "-".to_owned(),
    };
    vec![
        row.path.name().to_owned(),
        ranged(row.spreads.gbit_per_s, 1),
        ranged(row.spreads.cpu_s_per_gb, 2),
        format!("{:.0}", row.deliveries_per_1000_packets),
        format!("{:.1}", row.segments_per_aggregate),
        held,
        grouped(row.rr_per_s as u64),
        format!("{:.0}", row.rr_p50_us),
        grouped(row.retransmissions),
        grouped(row.lost()),
        if row.hash_ok { "right" } else { "WRONG" }.to_owned(),
    ]
}

fn ranged(spread: Spread, digits: usize) -> String {
    let Spread { median, min, max } = spread;
    format!("{median:.digits$} ({min:.digits$}-{max:.digits$})")
}
