//! Figure 11: cost over the Aggregation Limit.

use rxo_console::numbers::ratio;

use super::super::fit::Fit;
use super::super::row::Rows;
use super::super::stack::{PAPERS_LIMIT, Stack};
use super::super::units::Units;
use crate::claim::Claim;
use crate::figure::{Figure, Guide, Series};

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
        y_label: units.label(),
        x: limits.iter().map(|(limit, _)| limit.to_string()).collect(),
        series: vec![
            Series::of_spreads("here", spreads.collect()),
            Series::reference("x + y/k, fitted", curve.collect()),
        ],
        guides: original.map(|value| Guide { value, meaning: "Original" }).into_iter().collect(),
        claims: vec![formula(fit, units), flat(&points), one_costs_nothing(rows)],
        ..Figure::default()
    })
}

fn formula(fit: Option<Fit>, units: Units) -> Claim {
    let detail = fit.map(|Fit { x, y, .. }| {
        format!(
            "x = {x:.0} and y = {y:.0} {}: {:.0} % is per packet and can be shared.",
            units.label(),
            100.0 * ratio(y, x + y)
        )
    });
    Claim::new("menon.fig11.formula", fit.map(|fit| fit.r_squared), detail)
}

/// Makes the claim about the best limit above 20.
fn flat(points: &[(u16, f64)]) -> Claim {
    let at = |wanted| points.iter().find(|(limit, _)| *limit == wanted).map(|(_, cost)| *cost);
    let beyond = points.iter().filter(|(limit, _)| *limit > PAPERS_LIMIT).map(|(_, cost)| *cost);
    let both = at(PAPERS_LIMIT).zip(beyond.min_by(f64::total_cmp));
    let saved = both.map(|(twenty, least)| 100.0 * (1.0 - ratio(least, twenty)));
    Claim::new("menon.fig11.flat", saved, None)
}

fn one_costs_nothing(rows: Rows<'_>) -> Claim {
    let of = |stack| rows.of(1, stack).map(|row| row.ns_per_packet.median);
    let both = of(Stack::limited(1)).zip(of(Stack::ORIGINAL));
    let more = both.map(|(one, original)| 100.0 * (ratio(one, original) - 1.0));
    Claim::new("menon.fig11.one", more, None)
}
