//! Figure 12: throughput over the number of connections.

use super::super::paper::GAIN_AT_400;
use super::super::row::Rows;
use super::super::stack::Stack;
use crate::claim::Claim;
use crate::figure::{Figure, Series};

pub(super) fn figure_12(rows: Rows<'_>) -> Option<Figure> {
    let connections = rows.connections();
    if connections.len() < 2 {
        return None;
    }
    let line = |stack: Stack| {
        let of = |&n: &usize| rows.of(n, stack).map(|row| row.scaled_gbit_per_s);
        Series::of_spreads(stack.name(), connections.iter().map(of).collect())
    };
    Some(Figure {
        number: "12",
        x: connections.iter().map(usize::to_string).collect(),
        series: Stack::ALL.into_iter().map(line).chain([papers_gain(rows, &connections)]).collect(),
        claims: vec![at_many(rows, connections.last().copied().unwrap_or(1))],
        ..Figure::default()
    })
}

/// Returns a reference series: the original with the paper's gain, where the paper's text states one.
fn papers_gain(rows: Rows<'_>, connections: &[usize]) -> Series {
    let of = |&count: &usize| {
        let original = rows.of(count, Stack::ORIGINAL)?.scaled_gbit_per_s.median;
        (count >= MANY).then_some(original * (1.0 + GAIN_AT_400 / 100.0))
    };
    Series::reference("Original and the paper's gain", connections.iter().map(of).collect())
}

fn at_many(rows: Rows<'_>, most: usize) -> Claim {
    let gain = rows.gain(most, Stack::OPTIMIZED).filter(|_| most >= MANY);
    let percent = gain.map(|times| 100.0 * (times - 1.0));
    Claim::new("menon.fig12.at-400", percent, format!("With {most} connections."))
}

const MANY: usize = 400;
