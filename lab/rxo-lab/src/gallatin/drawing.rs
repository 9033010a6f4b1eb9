//! Draws the tables as bar charts.

use rxo_demo::sending::{Row, Way};
use rxo_demo::stats::Spread;
use rxo_trace::figure::{Axis, Draw, Figure, Series};

use super::paper;
use super::table::{Table, us_per_kb};

/// Returns every figure as a pair of file name and SVG text.
pub(super) fn all(tables: &[Table]) -> Vec<(String, String)> {
    let figures = [
        ("cost.svg", cost(tables)),
        ("rate.svg", rate(tables)),
        ("deliveries.svg", deliveries(tables)),
    ];
    figures.map(|(name, figure)| (name.to_owned(), figure.to_svg())).to_vec()
}

fn cost(tables: &[Table]) -> Figure {
    let figure = figure(tables, "What sending a KB costs the sending host", "us for 1,024 bytes");
    let figure = with_ways(figure, tables, |row| row.cpu_s_per_gb.map(us_per_kb));
    with_paper(figure, tables, |row| row.us_per_kb)
}

fn rate(tables: &[Table]) -> Figure {
    let figure = figure(tables, "The rate that the sender reaches", "Gbit/s");
    let figure = with_ways(figure, tables, |row| row.gbit_per_s);
    with_paper(figure, tables, |row| row.gbit_per_s)
}

fn deliveries(tables: &[Table]) -> Figure {
    let title = "Deliveries of pure ACKs to the sender's stack";
    let figure = figure(tables, title, "for 1,000 segments sent");
    with_ways(figure, tables, |row| {
        let all = 1_000.0 * row.ack_deliveries as f64 / row.segments.max(1) as f64;
        // The quotient of the sums over all rounds has no range.
        Spread { median: all, min: all, max: all }
    })
}

fn figure(tables: &[Table], title: &str, y: &str) -> Figure {
    let peers = tables.iter().map(|table| table.peer.label());
    let x = Axis::categories("how often the receiver acknowledges", peers);
    let described = format!("{title}, by how often the receiver acknowledges and by receive path.");
    Figure::new(title, x, Axis::linear(y)).describe(described)
}

fn with_ways(figure: Figure, tables: &[Table], value: fn(&Row) -> Spread) -> Figure {
    Way::ALL.iter().enumerate().fold(figure, |figure, (colour, &way)| {
        let spreads: Vec<_> = tables.iter().map(|table| table.of(way).map(value)).collect();
        let values = spreads.iter().map(|spread| spread.map_or(f64::NAN, |spread| spread.median));
        let varies = |spread: &Spread| spread.max > spread.min;
        let ranges = spreads.iter().map(|spread| spread.filter(varies).map(|s| (s.min, s.max)));
        figure.with(Series::bars(way.label(), values).ranges(ranges).colour(colour))
    })
}

/// Adds the paper's bars beside ours, in the colour of the way that they are compared with.
fn with_paper(figure: Figure, tables: &[Table], value: fn(&paper::PaperRow) -> f64) -> Figure {
    Way::ALL.iter().enumerate().skip(1).fold(figure, |figure, (colour, &way)| {
        let of = |table: &Table| paper::row(table.peer, way).map_or(f64::NAN, value);
        let name = format!("paper: {}", way.label());
        figure.with(Series::bars(name, tables.iter().map(of)).colour(colour).reference())
    })
}

#[cfg(test)]
mod tests {
    use super::super::peer::Peer;
    use super::*;
    use crate::gallatin::sample;

    #[test]
    fn every_figure_has_the_ways_and_the_papers_values() {
        let rows = |peer| {
            let rows = Way::ALL.map(|way| Row::of(way, 1, &[sample(9.0, 1.0, 50)]).unwrap());
            Table { peer, rows: rows.to_vec() }
        };
        let figures = all(&Peer::ALL.map(rows));
        assert_eq!(figures.len(), 3);
        for (name, svg) in &figures {
            for way in Way::ALL {
                assert!(svg.contains(&way.label().replace('\'', "&#39;")), "{name}");
            }
        }
        assert!(figures[0].1.contains("0.404") && !figures[2].1.contains("paper"));
        // A peer that was not measured before an interrupt has empty bars.
        all(&Peer::ALL.map(|peer| Table { peer, rows: Vec::new() }));
    }
}
