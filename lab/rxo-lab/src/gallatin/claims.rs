//! Compares the paper's statements with the tables. Each verdict is computed from the rows.

use rxo_console::numbers::ratio;
use rxo_demo::sending::{Row, Way};

use super::paper;
use super::peer::Peer;
use super::table::Table;
use crate::statement::Statement;

/// Returns every statement of the paper that `tables` can decide.
pub(super) fn all(tables: &[Table]) -> Vec<Statement> {
    let of = |peer| tables.iter().find(|table| table.peer == peer);
    let one = [
        of(Peer::Rarely).map(overhead),
        of(Peer::EveryEight).map(falls),
        of(Peer::Rarely).zip(of(Peer::EachSegment)).map(|(rarely, each)| more(rarely, each)),
    ];
    let rates = [Peer::Rarely, Peer::EveryEight].into_iter().filter_map(of).map(same_rate);
    one.into_iter().flatten().chain(rates).collect()
}

fn overhead(table: &Table) -> Statement {
    saves(
        table,
        "\"without aggregating ack's, the overhead on the sender is roughly 20% higher, even when \
         sending to a receiver which uses LRO\" (0.349 us/KB, with the patch 0.294)",
    )
}

fn falls(table: &Table) -> Statement {
    saves(
        table,
        "to a receiver that acknowledges about 8:1 the patch takes the sender's cost from 0.404 to \
         0.255 us/KB",
    )
}

/// Makes a statement that holds if aggregation saves at least the share that it saved in the paper.
fn saves(table: &Table, claim: &'static str) -> Statement {
    let Some((ours, paper)) = table.saving().zip(paper_saving(table.peer)) else {
        return Statement::new(claim, None, NOT_MEASURED.into());
    };
    let rate = table.of(Way::NoAggregation).map_or(0.0, |row| row.acks_per_segment.median);
    let text = format!(
        "{} (the paper's share: {paper:.0} %), with {rate:.3} ACKs for a segment.",
        saved(ours)
    );
    Statement::new(claim, Some(ours >= paper), text).unless_it_holds(|| match table.peer {
        Peer::Rarely => "What ACKs cost is their number: a Linux receiver sends few, because it \
                         acknowledges what arrives together with one, and then there is little to \
                         aggregate."
            .into(),
        _ => "On both ways the sender pays for rxo's worker, which the paper's driver is not: the \
              share is of more."
            .into(),
    })
}

fn saved(percent: f64) -> String {
    match percent {
        0.0.. => {
            format!("aggregation saves the sending host {percent:.0} % of its time for a byte")
        }
        _ => format!("aggregation costs the sending host {:.0} % more time for a byte", -percent),
    }
}

fn paper_saving(peer: Peer) -> Option<f64> {
    let [without, with] = [Way::NoAggregation, Way::AckAggregate].map(|way| paper::row(peer, way));
    Some(100.0 * (1.0 - with?.us_per_kb / without?.us_per_kb))
}

/// Compares the saving with a receiver that acknowledges rarely to that with one that acknowledges each
/// segment, as a receiver without LRO does.
fn more(rarely: &Table, each: &Table) -> Statement {
    let claim = "\"The differences are even more dramatic when sending to a receiver which does not \
                 use LRO (and hence sends more frequent acks)\"";
    let Some((few, many)) = rarely.saving().zip(each.saving()) else {
        return Statement::new(claim, None, NOT_MEASURED.into());
    };
    let ours = format!(
        "With an ACK for each segment {}, with rare ones {}.",
        saved(many),
        saved(few).replace("aggregation ", "it ")
    );
    Statement::new(claim, Some(many > few.max(0.0)), ours)
}

/// Makes a statement that holds if the ranges of both rates overlap, or the rate with aggregation is higher.
fn same_rate(table: &Table) -> Statement {
    let claim = match table.peer {
        Peer::EveryEight => {
            "to the receiver that acknowledges 8:1 the rate is no lower with aggregation (9.25 \
             against 8.53 Gbit/s)"
        }
        _ => {
            "to the receiver with LRO the rate is no lower with aggregation (9.44 and 9.44 Gbit/s)"
        }
    };
    let Some((without, with)) = table.compared() else {
        return Statement::new(claim, None, NOT_MEASURED.into());
    };
    let holds = with.gbit_per_s.max >= without.gbit_per_s.min && share(without, with) >= NEARLY_ALL;
    let ours = format!(
        "{:.2} Gbit/s with aggregation, {:.2} without: {:.0} %.",
        with.gbit_per_s.median,
        without.gbit_per_s.median,
        100.0 * share(without, with)
    );
    Statement::new(claim, Some(holds), ours).unless_it_holds(|| {
        "Sender, rxo and receiver share two cores here, and the rate is what they leave each other; \
         the paper's was that of its link."
            .into()
    })
}

fn share(without: &Row, with: &Row) -> f64 {
    ratio(with.gbit_per_s.median, without.gbit_per_s.median)
}

/// Least share of the rate without aggregation. A larger loss is more than the variation between rounds.
const NEARLY_ALL: f64 = 0.95;
const NOT_MEASURED: &str = "Not both ways were measured.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallatin::sample;

    fn table(peer: Peer, without: (f64, f64), with: (f64, f64)) -> Table {
        let row = |way, (rate, cpu)| Row::of(way, 1, &[sample(rate, cpu, 100)]).unwrap();
        Table { peer, rows: vec![row(Way::NoAggregation, without), row(Way::AckAggregate, with)] }
    }

    fn verdicts(tables: &[Table]) -> Vec<Option<bool>> {
        all(tables).iter().map(|statement| statement.holds).collect()
    }

    #[test]
    fn what_the_paper_found_holds_here_when_it_is_so_here() {
        let tables = [
            table(Peer::Rarely, (9.4, 0.349), (9.4, 0.290)),
            table(Peer::EveryEight, (8.5, 0.404), (9.2, 0.250)),
            table(Peer::EachSegment, (1.5, 5.0), (2.5, 2.5)),
        ];
        assert_eq!(verdicts(&tables), [Some(true); 5]);
        let ours = &all(&tables)[1].ours;
        assert!(ours.starts_with("aggregation saves the sending host 38 %"), "{ours}");
    }

    #[test]
    fn what_is_not_so_here_does_not_hold() {
        let tables = [
            table(Peer::Rarely, (9.4, 1.0), (9.4, 1.1)),
            table(Peer::EveryEight, (9.0, 1.0), (4.0, 1.2)),
            table(Peer::EachSegment, (1.5, 5.0), (1.5, 5.1)),
        ];
        assert_eq!(
            verdicts(&tables),
            [Some(false), Some(false), Some(false), Some(true), Some(false)]
        );
        assert!(all(&tables)[0].ours.starts_with("aggregation costs the sending host 10 % more"));
        assert!(all(&tables)[0].why.is_some());
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let tables = Peer::ALL.map(|peer| Table { peer, rows: Vec::new() });
        assert_eq!(verdicts(&tables), [None; 5]);
    }
}
