//! The findings: text for people, JSON for programs, drawings for both.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;
use rxo_demo::experiment::Findings;
use rxo_demo::wrap::count;
use serde::Serialize;

use super::aims;
use super::figures;
use super::plan::Plan;
use super::row::{ExchangeRow, Row, Rows};
use super::stack::Place;
use super::units::Units;
use crate::figure::Figure;
use crate::limits::Effort;
use crate::menon::verdict::Verdict;

/// The repeated measurements of the paper.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    bulk: Vec<Row>,
    exchange: Vec<ExchangeRow>,
    /// The figures, each with the paper's statements about it.
    figures: Vec<Figure>,
    /// The verdicts on the project's aims for its host.
    aims: Vec<Verdict>,
    #[serde(skip)]
    units: Units,
}

impl Found {
    pub(super) fn new(bulk: Vec<Row>, exchange: Vec<ExchangeRow>, units: Units) -> Self {
        let rows = Rows { bulk: &bulk, exchange: &exchange };
        let (figures, aims) = (figures::all(rows, units), aims::all(rows));
        Self { bulk, exchange, figures, aims, units }
    }

    fn bulk_table(&self) -> String {
        let mut table = Table::new(&[
            "connections",
            "on",
            "stack",
            "Gbit/s",
            "Gbit/CPU s",
            "ns/packet",
            "core %",
            "packets/delivery",
            "ACKs/packet",
            "sent again",
            "ring drops",
        ]);
        for row in &self.bulk {
            let scaled = row.scaled_gbit_per_s;
            table.row([
                row.case.connections.to_string(),
                if row.case.place == Place::Guest { "a TAP" } else { "the wire" }.to_owned(),
                row.case.stack.name(),
                format!("{:.2}", row.gbit_per_s.median),
                format!("{:.2} ({:.2}-{:.2})", scaled.median, scaled.min, scaled.max),
                format!("{:.0}", row.ns_per_packet.median),
                format!("{:.0}", row.core_percent.median),
                format!("{:.1}", row.packets_per_delivery.median),
                format!("{:.3}", row.acks_per_packet.median),
                grouped(row.retransmissions),
                grouped(row.ring_drops),
            ]);
        }
        table.render()
    }

    fn exchange_table(&self) -> String {
        let mut table = Table::new(&["stack", "a second", "p50 us"]);
        for row in &self.exchange {
            let per_s = row.per_s;
            table.row([
                row.stack.name(),
                format!("{:.0} ({:.0}-{:.0})", per_s.median, per_s.min, per_s.max),
                format!("{:.1}", row.p50_us.median),
            ]);
        }
        table.render()
    }

    /// Returns notes on the method.
    pub(super) fn notes(&self, plan: &Plan) -> Vec<String> {
        let Effort { rounds, duration } = plan.effort;
        vec![
            format!(
                "Medians of {} of {} s, least and most in brackets. Linux senders, CUBIC, MTU 1500, \
                 in a private network on one core; rxo's host and a reading thread for each connection on \
                 another. Gbit/CPU s: what those receive for a second of their processor time, the \
                 paper's CPU-scaled throughput.",
                count(rounds, "round"),
                duration.as_secs_f64()
            ),
            "Original: each frame alone, an ACK for every second segment. Receive Aggregation: the profile \
             menon-2008, Aggregation Limit 20, as many ACKs, each built by itself. ACK Offload: those \
             ACKs leave the stack as one template, which is expanded before the device."
                .to_owned(),
            "Categories: sampled turns of the worker are timed stage by stage, and the shares carried to \
             its processor time; per-byte is the reading threads', waiting and waking included, in which \
             buffers are given back too. One read in sixteen is compared with what was sent, and every \
             read before and after the time that is measured; lengths of all streams are compared at the \
             end."
                .to_owned(),
            self.units.note(),
            "A guest is rxo's host on a TAP that a bridge joins with the wire; what the bridge does is done on \
             the sender's core and in no account. The paper's text states the values shown and no others; \
             its figures are drawings."
                .to_owned(),
        ]
    }
}

impl Findings for Found {
    /// Returns the rows, the figures and the aims as text.
    fn paragraphs(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if !self.bulk.is_empty() {
            parts.push(format!("Bulk receive\n\n{}", self.bulk_table()));
        }
        if !self.exchange.is_empty() {
            parts.push(format!("Requests and responses\n\n{}", self.exchange_table()));
        }
        parts.extend(self.figures.iter().map(Figure::text));
        parts.push("What rxo wants of its host".to_owned());
        parts.extend(self.aims.iter().map(Verdict::text));
        parts
    }

    fn withhold(&mut self) {
        self.figures.iter_mut().for_each(Figure::withhold);
        self.aims.iter_mut().for_each(Verdict::withhold);
    }

    fn drawings(&self) -> Vec<(String, String)> {
        self.figures.iter().map(|figure| (figure.file_name(), figure.svg())).collect()
    }
}
