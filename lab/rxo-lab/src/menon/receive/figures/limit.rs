//! Figure 11: cost over the Aggregation Limit.

use rxo_console::numbers::ratio;

use super::super::fit::Fit;
use super::super::row::Rows;
use super::super::stack::{PAPERS_LIMIT, Stack};
use super::super::units::Units;
use crate::figure::{Figure, Guide, Series};
use crate::statement::Statement;

pub(super) fn figure_11(rows: Rows<'_>, units: Units) -> Option<Figure> {
    let limits = rows.limits();
    // A single limit, that of the optimized system, is no sweep.
    if limits.len() < 3 {
        return None;
    }
    let in_units = |ns| units.of_ns(ns);
    let points: Vec<(u16, f64)> =
        limits.iter().map(|(limit, row)| (*limit, in_units(row.ns_per_packet.median))).collect();
    let spreads = limits.iter().map(|(_, row)| Some(row.ns_per_packet.map(in_units)));
    let fit = Fit::of(&points);
    let curve = points.iter().map(|(limit, _)| fit.map(|fit| fit.at(*limit)));
    let original = rows.of(1, Stack::ORIGINAL).map(|row| in_units(row.ns_per_packet.median));
    Some(Figure {
        number: "11",
        title: "What a packet costs, by Aggregation Limit",
        fixed: "one connection, both optimizations",
        x_label: "Aggregation Limit",
        y_label: units.label(),
        x: limits.iter().map(|(limit, _)| limit.to_string()).collect(),
        series: vec![
            Series::of_spreads("here", spreads.collect()),
            Series::reference("x + y/k, fitted", curve.collect()),
        ],
        guides: original.map(|value| Guide { value, meaning: "Original" }).into_iter().collect(),
        statements: vec![formula(fit, units), flat(&points), one_costs_nothing(rows)],
        ..Figure::default()
    })
}

fn formula(fit: Option<Fit>, units: Units) -> Statement {
    let claim = "the cost follows x + y/k \"fairly well\"";
    let Some(Fit { x, y, r_squared }) = fit else {
        return Statement::new(claim, None, "Fewer than three limits were measured.".into());
    };
    let ours = format!(
        "x = {x:.0} and y = {y:.0} {}: {:.0} % is per packet and can be shared. The curve explains \
         {:.0} % of the spread.",
        units.label(),
        100.0 * ratio(y, x + y),
        100.0 * r_squared
    );
    Statement::new(claim, Some(r_squared >= FAIRLY_WELL), ours)
}

fn flat(points: &[(u16, f64)]) -> Statement {
    let claim = "beyond a limit of 20 additional aggregation does not yield any substantial \
                 improvement";
    let at = |wanted| points.iter().find(|(limit, _)| *limit == wanted).map(|(_, cost)| *cost);
    let beyond = points.iter().filter(|(limit, _)| *limit > PAPERS_LIMIT).map(|(_, cost)| *cost);
    let Some((twenty, least)) = at(PAPERS_LIMIT).zip(beyond.min_by(f64::total_cmp)) else {
        return Statement::new(claim, None, "No limit above 20 was measured beside 20.".into());
    };
    let saved = 100.0 * (1.0 - ratio(least, twenty));
    let ours = format!("The best limit above 20 saves {saved:.0} % of what a packet costs at 20.");
    Statement::new(claim, Some(saved <= SUBSTANTIAL_PERCENT), ours)
}

fn one_costs_nothing(rows: Rows<'_>) -> Statement {
    let claim = "with an Aggregation Limit of one there is no degradation in performance";
    let of = |stack| rows.of(1, stack).map(|row| row.ns_per_packet.median);
    let Some((one, original)) = of(Stack::limited(1)).zip(of(Stack::ORIGINAL)) else {
        return Statement::new(claim, None, "A limit of one was not measured.".into());
    };
    let more = 100.0 * (ratio(one, original) - 1.0);
    let ours = format!("A packet costs {more:+.1} % with a limit of one, against Original.");
    Statement::new(claim, Some(more <= DEGRADATION_PERCENT), ours)
}

const FAIRLY_WELL: f64 = 0.9;
const SUBSTANTIAL_PERCENT: f64 = 5.0;
/// Largest degradation that the aim permits, in percent.
const DEGRADATION_PERCENT: f64 = 3.0;
