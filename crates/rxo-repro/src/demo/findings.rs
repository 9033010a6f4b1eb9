//! What the demo found: a table and a sentence for people, JSON for machines.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;
use serde::Serialize;

use super::path::Path;
use super::plan::Plan;
use super::row::Row;
use super::sentence::sentence;
use crate::experiment::Findings;
use crate::stats::Spread;

/// The five paths, side by side.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    rows: Vec<Row>,
    setup: Setup,
    /// `None` on a busy machine.
    sentence: Option<String>,
}

/// What was measured, so that it can be measured again.
#[derive(Debug, Serialize)]
pub(super) struct Setup {
    pub(super) rounds: usize,
    pub(super) bulk_s: f64,
    pub(super) request_response_s: f64,
    pub(super) mtu: u32,
    pub(super) sender_core: Option<usize>,
    pub(super) receiver_core: Option<usize>,
    /// The policy of the path `rxo`, with every field.
    pub(super) policy: serde_json::Map<String, serde_json::Value>,
}

impl Found {
    /// What these rows, measured as planned, say.
    pub(super) fn new(rows: Vec<Row>, plan: &Plan) -> Self {
        Self { sentence: Some(sentence(&rows)), rows, setup: plan.setup() }
    }

    /// What was measured, and what the columns say.
    pub(super) fn legend(&self) -> String {
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

impl Findings for Found {
    fn paragraphs(&self) -> Vec<String> {
        let mut table = Table::new(&HEAD);
        for row in &self.rows {
            table.row(cells(row));
        }
        vec![table.render()]
    }

    fn withhold(&mut self) {
        self.sentence = None;
    }

    fn conclusion(&self) -> Option<String> {
        self.sentence.clone()
    }

    fn is_intact(&self) -> bool {
        self.rows.iter().all(|row| row.hash_ok)
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
