//! Table 1: request and response of single bytes.

use rxo_console::numbers::ratio;

use super::super::paper::REQUESTS;
use super::super::row::Rows;
use super::super::stack::Stack;
use crate::claim::Claim;
use crate::figure::{Figure, Series};

pub(super) fn table_1(rows: Rows<'_>) -> Option<Figure> {
    rows.exchange.first()?;
    let stacks = [Stack::ORIGINAL, Stack::OPTIMIZED].into_iter().enumerate();
    // A column is either the paper's or ours, so each series has values in some columns only.
    let paper = stacks.clone().map(|(column, stack)| {
        let values = REQUESTS.iter().map(|(_, rates)| Some(rates[column])).chain([None]);
        let name = format!("paper: {}", stack.name());
        Series::reference(name, values.collect()).bars().colour(column)
    });
    let here = stacks.map(|(column, stack)| {
        let here = rows.exchange(stack).map(|row| row.per_s);
        let values = REQUESTS.iter().map(|_| None).chain([here]);
        Series::of_spreads(stack.name(), values.collect()).bars().colour(column)
    });
    let names = REQUESTS.iter().map(|(name, _)| *name).chain(["here"]);
    Some(Figure {
        number: "Table 1",
        x: names.map(str::to_owned).collect(),
        series: paper.chain(here).collect(),
        claims: vec![unchanged(rows)],
        ..Figure::default()
    })
}

fn unchanged(rows: Rows<'_>) -> Claim {
    let of = |stack| rows.exchange(stack).map(|row| row.per_s.median);
    let both = of(Stack::ORIGINAL).zip(of(Stack::OPTIMIZED));
    let change = both.map(|(before, after)| 100.0 * (ratio(after, before) - 1.0));
    let detail =
        both.map(|(before, after)| format!("{before:.0} a second without, {after:.0} with both."));
    Claim::new("menon.table1.requests", change, detail)
}
