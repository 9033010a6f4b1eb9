//! The findings of the demo, which are its figures and conclusions: a table and a sentence for people, JSON
//! for programs.

use rxo_console::numbers::grouped;
use serde::Serialize;

use super::path::Path;
use super::plan::Plan;
use super::row::Row;
use super::sentence::sentence;
use super::side_by_side::{Cells, SideBySide, verdict};
use crate::wrap::count;

/// The findings of the demo: a row for each path, and the settings.
pub(crate) type DemoFindings = SideBySide<Row, Setup>;

/// The settings of the demo, so that a reader can repeat the demo.
#[derive(Debug, Serialize)]
pub(crate) struct Setup {
    pub(super) rounds: usize,
    pub(super) bulk_s: f64,
    pub(super) request_response_s: f64,
    pub(super) mtu: u32,
    pub(super) sender_core: Option<usize>,
    pub(super) receiver_core: Option<usize>,
    /// The coalescing policy on the path through rxo, as all its fields by name.
    pub(super) policy: serde_json::Map<String, serde_json::Value>,
}

impl DemoFindings {
    /// Makes the findings from `rows`, which were measured by `plan`.
    pub(super) fn new(rows: Vec<Row>, plan: &Plan) -> Self {
        Self { sentence: Some(sentence(&rows)), rows, setup: plan.setup() }
    }

    /// Returns a sentence that explains the measurement and the columns.
    pub(super) fn legend(&self) -> String {
        let Setup { rounds, bulk_s, .. } = self.setup;
        let connections = self.rows.first().map_or(0, |row| row.connections);
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

impl Cells for Row {
    const HEAD: &'static [&'static str] = &[
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

    fn cells(&self) -> Vec<String> {
        let held = match (self.hold_p50_us, self.hold_p99_us) {
            (Some(p50), Some(p99)) if self.path == Path::Rxo => format!("{p50:.0}/{p99:.0}"),
            _ => "-".to_owned(),
        };
        vec![
            self.path.name().to_owned(),
            self.spreads.gbit_per_s.ranged(1),
            self.spreads.cpu_s_per_gb.ranged(2),
            format!("{:.0}", self.deliveries_per_1000_packets),
            format!("{:.1}", self.segments_per_aggregate),
            held,
            grouped(self.rr_per_s as u64),
            format!("{:.0}", self.rr_p50_us),
            grouped(self.losses.retransmissions),
            grouped(self.losses.lost()),
            verdict(self.hash_ok),
        ]
    }

    fn is_intact(&self) -> bool {
        self.hash_ok
    }
}
