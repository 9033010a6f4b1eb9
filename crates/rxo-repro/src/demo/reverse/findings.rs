//! What was found on the sender's side: a table and a sentence for people, JSON for machines.

use rxo_console::numbers::grouped;
use rxo_console::output::fields;
use rxo_console::table::Table;
use rxo_lab::{AckRate, LabOptions};
use serde::Serialize;

use super::Plan;
use super::sentence::sentence;
use crate::experiment::Findings;
use crate::sending::{Row, Way};
use crate::stats::Spread;

/// The three ways, side by side.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    rows: Vec<Row>,
    setup: Measured,
    /// `None` on a busy machine.
    sentence: Option<String>,
}

/// What was measured, so that it can be measured again.
#[derive(Debug, Serialize)]
struct Measured {
    rounds: usize,
    bulk_s: f64,
    mtu: u32,
    /// How often the peer acknowledges: "each", "linux", or every so many segments.
    peer_acks: String,
    hold: String,
    peer_core: Option<usize>,
    host_core: Option<usize>,
    /// The policy of the way `ack-aggregate`, with every field.
    policy: serde_json::Map<String, serde_json::Value>,
}

impl Found {
    /// What these rows, measured as planned, say.
    pub(super) fn new(rows: Vec<Row>, Plan { rounds, setup, .. }: &Plan) -> Self {
        let policy = Way::AckAggregate.policy();
        let setup = Measured {
            rounds: *rounds,
            bulk_s: setup.bulk.as_secs_f64(),
            mtu: LabOptions::default().mtu,
            peer_acks: name(setup.acks),
            hold: setup.hold.to_string(),
            peer_core: setup.cores.sender,
            host_core: setup.cores.receiver,
            policy: policy.map(|policy| fields(policy.settings())).unwrap_or_default(),
        };
        Self { sentence: Some(sentence(&rows)), rows, setup }
    }

    /// What was measured, and what the columns say.
    pub(super) fn legend(&self) -> String {
        let Measured { rounds, bulk_s, peer_acks, .. } = &self.setup;
        let connections = self.rows.first().map_or(0, |row| row.connections);
        let acks = match peer_acks.as_str() {
            "each" => "each segment at once".to_owned(),
            "linux" => "as Linux does by itself".to_owned(),
            many => format!("every {many} segments at once"),
        };
        format!(
            "Medians of {} of {bulk_s} s with {}, least and most in brackets; a host that sends to \
             a peer that acknowledges {acks}. CPU: of the sending host's threads, rxo and ksoftirqd. \
             core: the time in which the sending host's core was not idle, which on a quiet machine \
             has the interrupts too. ACKs in: to the host, of all rounds together, and the \
             deliveries that its stack was given for them. resent: by the host. lost: in rxo's ring, \
             at the wire's end, or not taken by the host.",
            count(*rounds, "round"),
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

/// An [`AckRate`] as it is typed.
fn name(acks: AckRate) -> String {
    match acks {
        AckRate::Default => "linux".to_owned(),
        AckRate::EachSegment => "each".to_owned(),
        AckRate::Groups(segments) => segments.to_string(),
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

const HEAD: [&str; 11] = [
    "way",
    "Gbit/s",
    "CPU s/GB",
    "core s/GB",
    "ACKs/segment",
    "ACKs in",
    "deliveries",
    "ACKs/delivery",
    "resent",
    "lost",
    "bytes",
];

fn cells(row: &Row) -> Vec<String> {
    vec![
        row.way.name().to_owned(),
        ranged(row.gbit_per_s, 1),
        ranged(row.cpu_s_per_gb, 2),
        ranged(row.core_s_per_gb, 2),
        format!("{:.2}", row.acks_per_segment.median),
        grouped(row.acks),
        grouped(row.ack_deliveries),
        format!("{:.1}", row.acks_per_delivery.median),
        grouped(row.retransmissions),
        grouped(row.lost()),
        if row.hash_ok { "right" } else { "WRONG" }.to_owned(),
    ]
}

fn ranged(spread: Spread, digits: usize) -> String {
    let Spread { median, min, max } = spread;
    format!("{median:.digits$} ({min:.digits$}-{max:.digits$})")
}
