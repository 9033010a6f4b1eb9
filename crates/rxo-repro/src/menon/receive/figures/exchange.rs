//! Table 1: single bytes there and back.

use rxo_console::numbers::ratio;

use super::super::paper::REQUESTS;
use super::super::row::Rows;
use super::super::stack::Stack;
use crate::figure::{Figure, Series};
use crate::statement::Statement;

pub(super) fn table_1(rows: Rows<'_>) -> Option<Figure> {
    rows.exchange.first()?;
    let bars = |stack: Stack| {
        let column = usize::from(stack != Stack::ORIGINAL);
        let paper = REQUESTS.iter().map(|(_, rates)| Some(rates[column]));
        let here = rows.exchange(stack).map(|row| row.per_s.median);
        Series::new(stack.name(), paper.chain([here]).collect()).bars()
    };
    let names = REQUESTS.iter().map(|(name, _)| *name).chain(["here"]);
    Some(Figure {
        number: "Table 1",
        title: "Requests and responses of one byte",
        fixed: "one connection",
        x_label: "system",
        y_label: "a second",
        x: names.map(str::to_owned).collect(),
        series: [Stack::ORIGINAL, Stack::OPTIMIZED].map(bars).to_vec(),
        guides: Vec::new(),
        statements: vec![unchanged(rows)],
    })
}

fn unchanged(rows: Rows<'_>) -> Statement {
    let claim =
        "the optimizations \"have no noticeable impact on the latency of packet processing\"";
    let of = |stack| rows.exchange(stack).map(|row| row.per_s.median);
    let Some((before, after)) = of(Stack::ORIGINAL).zip(of(Stack::OPTIMIZED)) else {
        return Statement::new(claim, None, "Not both stacks were measured.".into());
    };
    let change = 100.0 * (ratio(after, before) - 1.0);
    let ours = format!("{before:.0} a second without, {after:.0} with both: {change:+.1} %.");
    Statement::new(claim, Some(change >= -MOST_PERCENT), ours)
}

/// What the aim allows to lose.
const MOST_PERCENT: f64 = 2.0;
