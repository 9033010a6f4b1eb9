//! The results with one receiver, beside the paper's rows for a similar receiver.

use rxo_console::numbers::{grouped, ratio};
use rxo_console::table::Table as TextTable;
use rxo_demo::sending::{Row, Way};
use serde::{Serialize, Serializer};

use super::paper::{self, PaperRow};
use super::peer::Peer;

/// The rows of one receiver.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) peer: Peer,
    /// The rows of the measured ways.
    pub(super) rows: Vec<Row>,
}

/// Converts seconds per 10^9 bytes to the paper's unit, microseconds per 1,024 bytes.
pub(super) fn us_per_kb(s_per_gb: f64) -> f64 {
    s_per_gb * 1.024
}

impl Table {
    pub(super) fn of(&self, way: Way) -> Option<&Row> {
        self.rows.iter().find(|row| row.way == way)
    }

    /// Returns the rows without and with aggregation; `None` unless both were measured.
    pub(super) fn compared(&self) -> Option<(&Row, &Row)> {
        Some((self.of(Way::NoAggregation)?, self.of(Way::AckAggregate)?))
    }

    /// Returns the share of the sender's processor time per byte that aggregation saves, in percent.
    pub(super) fn saving(&self) -> Option<f64> {
        let (without, with) = self.compared()?;
        Some(100.0 * (1.0 - ratio(with.cpu_s_per_gb.median, without.cpu_s_per_gb.median)))
    }

    /// Returns the table as text: the paper's rows, then ours.
    pub(super) fn text(&self) -> String {
        let mut table = TextTable::new(&HEAD);
        for row in paper::rows(self.peer) {
            table.row(paper_cells(row));
        }
        for row in &self.rows {
            table.row(cells(row));
        }
        let described = self.peer.described();
        let title = match self.peer {
            Peer::Rarely => format!("Table 1. To {described} (the paper: one with LRO)"),
            Peer::EveryEight => format!("Table 2. To {described} (the paper: Solaris, about 8:1)"),
            Peer::EachSegment => format!("To {described} (not in the paper)"),
        };
        format!("{title}\n\n{}", table.render())
    }
}

const HEAD: [&str; 8] = [
    "receive path of the sender",
    "us/KB",
    "Gbit/s",
    "ACKs/segment",
    "ACKs in",
    "deliveries",
    "ACKs/delivery",
    "lost",
];

fn paper_cells(row: &PaperRow) -> Vec<String> {
    let PaperRow { name, gbit_per_s, us_per_kb, .. } = row;
    let known = [format!("paper: {name}"), format!("{us_per_kb:.3}"), format!("{gbit_per_s:.2}")];
    known.into_iter().chain((0..5).map(|_| "-".to_owned())).collect()
}

fn cells(row: &Row) -> Vec<String> {
    vec![
        format!("here: {}", named(row.way)),
        row.cpu_s_per_gb.map(us_per_kb).ranged(3),
        row.gbit_per_s.ranged(2),
        format!("{:.3}", row.acks_per_segment.median),
        grouped(row.acks),
        grouped(row.ack_deliveries),
        format!("{:.1}", row.acks_per_delivery.median),
        grouped(row.losses.lost()),
    ]
}

const fn named(way: Way) -> &'static str {
    match way {
        Way::KernelGro => "the kernel's GRO alone, does not",
        Way::NoAggregation => "rxo, does not",
        Way::AckAggregate => "rxo with --ack-aggregate, does",
    }
}

/// Serializes the paper's rows and derived figures beside the measured rows.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Ours<'a> {
            us_per_kb: f64,
            #[serde(flatten)]
            row: &'a Row,
        }
        #[derive(Serialize)]
        struct Whole<'a> {
            peer: Peer,
            paper: &'a [PaperRow],
            saving_percent: Option<f64>,
            rows: Vec<Ours<'a>>,
        }
        let rows = self.rows.iter().map(|row| {
            let us_per_kb = us_per_kb(row.cpu_s_per_gb.median);
            Ours { us_per_kb, row }
        });
        let rows = rows.collect();
        let (peer, paper) = (self.peer, paper::rows(self.peer));
        Whole { peer, paper, saving_percent: self.saving(), rows }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallatin::sample;

    #[test]
    fn papers_and_our_rows_stand_in_one_unit() {
        let rows = [(Way::NoAggregation, 2.0, 1_000), (Way::AckAggregate, 1.0, 40)].map(
            |(way, cpu, deliveries)| Row::of(way, 1, &[sample(9.0, cpu, deliveries)]).unwrap(),
        );
        let table = Table { peer: Peer::EveryEight, rows: rows.to_vec() };
        let text = table.text();
        assert!(text.contains("paper: inet_lro, does not") && text.contains("0.404"), "{text}");
        assert!(text.contains("2.048 (2.048-2.048)") && text.contains("25.0"), "{text}");
        assert!((table.saving().unwrap() - 50.0).abs() < 1e-9);
        let json = serde_json::to_value(&table).unwrap();
        assert_eq!(json["rows"][1]["us_per_kb"], 1.024);
        assert_eq!(json["paper"][2]["us_per_kb"], 0.255);
        let half = Table { rows: table.rows[..1].to_vec(), ..table };
        assert!(half.saving().is_none());
    }
}
