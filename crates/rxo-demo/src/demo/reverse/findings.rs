//! The findings on the sender's side: a table and a sentence for people, JSON for programs.

use rxo_console::numbers::grouped;
use rxo_console::output::fields;
use rxo_testbed::{AckRate, LabOptions};
use serde::Serialize;

use super::Plan;
use super::sentence::sentence;
use crate::demo::side_by_side::{Cells, SideBySide, verdict};
use crate::sending::{Row, Way};
use crate::wrap::count;

/// The findings of `rxo demo --reverse`: a row for each of the three ways in which ACKs reach the sender, and
/// the settings.
pub(crate) type ReverseFindings = SideBySide<Row, Measured>;

/// The settings of `rxo demo --reverse`, so that a reader can repeat the measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    rounds: usize,
    bulk_s: f64,
    mtu: u32,
    /// The rate at which the peer acknowledges: "each", "linux", or a number of segments per ACK.
    peer_acks: String,
    hold: String,
    peer_core: Option<usize>,
    host_core: Option<usize>,
    /// The coalescing policy with `--ack-aggregate`, as all its fields by name.
    policy: serde_json::Map<String, serde_json::Value>,
}

impl ReverseFindings {
    /// Makes the findings from `rows`, which were measured by the plan.
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

    /// Returns a sentence that explains the measurement and the columns.
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

impl Cells for Row {
    const HEAD: &'static [&'static str] = &[
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

    fn cells(&self) -> Vec<String> {
        vec![
            self.way.name().to_owned(),
            self.gbit_per_s.ranged(1),
            self.cpu_s_per_gb.ranged(2),
            self.core_s_per_gb.ranged(2),
            format!("{:.2}", self.acks_per_segment.median),
            grouped(self.acks),
            grouped(self.ack_deliveries),
            format!("{:.1}", self.acks_per_delivery.median),
            grouped(self.losses.retransmissions),
            grouped(self.losses.lost()),
            verdict(self.hash_ok),
        ]
    }

    fn is_intact(&self) -> bool {
        self.hash_ok
    }
}

/// Returns the peer's ACK rate in the syntax of `--peer-acks`.
fn name(acks: AckRate) -> String {
    match acks {
        AckRate::Default => "linux".to_owned(),
        AckRate::EachSegment => "each".to_owned(),
        AckRate::Groups(segments) => segments.to_string(),
    }
}
