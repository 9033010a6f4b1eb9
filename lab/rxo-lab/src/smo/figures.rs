//! The paper's figures 5 and 6, and the comparable part of figure 8, with their claims.

use rxo_console::numbers::ratio;

use super::Measured;
use super::category::Category;
use super::cost::Cost;
use super::paper;
use super::plan::Case;
use super::real::Sample;
use super::sender::Way;
use super::times::Times;
use crate::claim::Claim;
use crate::figure::{Bracket, Figure, Guide, Series, Shape};
use crate::scenario::{Cells, Chart};

type Values = Cells<Case, f64>;

/// Returns every figure that was measured.
pub(super) fn all(measured: &Measured) -> Vec<Figure> {
    let Measured { costs, simulated, knee, real, .. } = measured;
    let of_costs = |of: fn(&Cost) -> Option<f64>| {
        let cell = |cost: &Cost| Some(((cost.case.way, cost.case.receivers), vec![of(cost)?]));
        Values::of(costs.iter().filter_map(cell).collect())
    };
    let times = |all: &[Times]| Values::of(all.iter().map(|it| (it.case, it.percent())).collect());
    let casts = simulated.iter().map(|it| ((it.way, it.receivers), vec![it.percent()]));
    let (casts, knee, real) = (Values::of(casts.collect()), times(knee), times(real));
    let with = |claims| move |figure| Figure { claims, guides: vec![LINK], ..figure };
    let simulated = SIMULATED.figure(&casts).map(with(growths(ON_VIRTUAL_TIME, &casts)));
    let acks = of_costs(|cost| Some(cost.ack));
    let figures = [
        simulated,
        KNEE.figure(&knee).map(with(growths(AT_KNEE, &knee))),
        REAL.figure(&real).map(with(vec![growth(IN_NAMESPACES, Way::Fast, &real)])),
        components(costs),
        BY_RECEIVERS.figure(&acks).filter(|figure| figure.x.len() > 1),
        CYCLES.figure(&of_costs(|cost| cost.cycles)),
        // The paper compares one core with several; here there is one, so that its claims are not repeated.
        MISSES.figure(&of_costs(|cost| cost.misses)),
    ];
    figures.into_iter().flatten().collect()
}

const SIMULATED: Chart<Case, f64> = Chart {
    number: "5 simulated",
    x: |(_, receivers)| receivers.to_string(),
    line: |(way, _)| way.line(),
    value: |value| *value,
    paper: |(way, receivers)| {
        let (_, times) = paper::TIMES.iter().find(|(count, _)| *count == receivers)?;
        Some(100.0 * times[usize::from(way == Way::Stack)] / paper::LEAST_S)
    },
    shape: Shape::Line,
};
const KNEE: Chart<Case, f64> = Chart { number: "5 at the knee", shape: Shape::Boxes, ..SIMULATED };
/// In namespaces the link is far slower than the knee, so the paper's values do not apply.
const REAL: Chart<Case, f64> = Chart { number: "5 in namespaces", paper: |_| None, ..KNEE };
const BY_RECEIVERS: Chart<Case, f64> =
    Chart { number: "6 by receivers", paper: |_| None, shape: Shape::Bars, ..SIMULATED };
const CYCLES: Chart<Case, f64> = Chart { number: "6 in cycles", ..BY_RECEIVERS };
const MISSES: Chart<Case, f64> = Chart { number: "8 on one core", ..CYCLES };
const LINK: Guide = Guide { value: 100.0, meaning: "the link alone" };

/// Makes the claims `ids` about growth from 88 receivers to 168, with the fast path and without.
fn growths(ids: [&str; 2], percent: &Values) -> Vec<Claim> {
    let all = ids.into_iter().zip([Way::Fast, Way::Stack]);
    all.map(|(id, way)| growth(id, way, percent)).collect()
}

fn growth(id: &str, way: Way, percent: &Values) -> Claim {
    let median = |receivers| percent.median((way, receivers), |value| *value);
    let both = median(paper::FEWEST).zip(median(paper::MOST));
    Claim::new(id, both.map(|(few, many)| 100.0 * (ratio(many, few) - 1.0)), None)
}

const ON_VIRTUAL_TIME: [&str; 2] = ["smo.fig5.simulated.with", "smo.fig5.simulated.without"];
const AT_KNEE: [&str; 2] = ["smo.fig5.knee.with", "smo.fig5.knee.without"];
const IN_NAMESPACES: &str = "smo.fig5.namespaces";

/// Draws the cost of an acknowledgement, by component.
fn components(costs: &[Cost]) -> Option<Figure> {
    let most =
        costs.iter().map(|cost| cost.case.receivers).filter(|it| *it <= paper::MOST).max()?;
    let [stack, mechanism, best] = Way::ALL.map(|way| find(costs, way, most));
    let all = [stack?, mechanism?, best?];
    let part = |category: Category| {
        let values = all.iter().map(|cost| Some(cost.parts[category as usize])).collect();
        Series::new(category.name(), values).stack()
    };
    let brackets =
        all.iter().zip(0..).map(|(cost, place)| Bracket { place, to: cost.ack, name: "an ACK" });
    Some(Figure {
        number: "6",
        x: Way::ALL.map(|way| way.line().to_owned()).to_vec(),
        series: Category::ALL.into_iter().map(part).collect(),
        brackets: brackets.collect(),
        claims: savings(all),
        ..Figure::default()
    })
}

/// Makes the claims about savings: the paper's are about its change alone, and ours about rxo's best.
fn savings([without, with, best]: [&Cost; 3]) -> Vec<Claim> {
    let claim = |id: &str, of: &dyn Fn(&Cost) -> Option<f64>, with: &Cost| {
        let both = of(without).filter(|before| *before > 0.0).zip(of(with));
        let saved = both.map(|(before, after)| 100.0 * (1.0 - ratio(after, before)));
        let detail = both.map(|(before, after)| format!("{before:.0} without, {after:.0} with."));
        Claim::new(id, saved, detail)
    };
    let part = |category: Category| move |cost: &Cost| Some(cost.parts[category as usize]);
    let saved = |category| {
        let [before, after] = [without, with].map(|cost| cost.parts[category as usize]);
        100.0 * (1.0 - ratio(after, before))
    };
    let why = || {
        format!(
            "RX alone saves {:.0} %, memory {:.0} %; block and aggregate are {:.0} instructions with it.",
            saved(Category::Rx),
            saved(Category::Memory),
            with.parts[Category::Block as usize] + with.parts[Category::Aggregate as usize]
        )
    };
    let instructions = claim("smo.fig6.instructions", &|cost| Some(cost.ack), with);
    // Without lines of source every part is zero.
    let has_parts = with.parts[Category::Block as usize] > 0.0;
    vec![
        if has_parts { instructions.because(why) } else { instructions },
        claim("smo.fig6.cycles", &|cost| cost.cycles, with),
        claim("smo.fig6.sync", &part(Category::Sync), with),
        claim("smo.aim.instructions", &|cost| Some(cost.ack), best),
        claim("smo.aim.cycles", &|cost| cost.cycles, best),
    ]
}

fn find(costs: &[Cost], way: Way, receivers: usize) -> Option<&Cost> {
    costs.iter().find(|cost| (cost.case.way, cost.case.receivers) == (way, receivers))
}

/// Makes the claims that belong to no figure of the paper.
pub(super) fn aims(measured: &Measured) -> Vec<Claim> {
    let cost = |receivers| find(&measured.costs, Way::Fast, receivers).map(|cost| cost.ack);
    let both = cost(paper::FEWEST).zip(cost(MANY));
    let many = Claim::new(
        "smo.aim.many",
        both.map(|(few, many)| many / few),
        both.map(|(few, many)| format!("{few:.0} and {many:.0} instructions.")),
    );
    let hardship = measured.hardship.iter().map(|((way, receivers), sample)| {
        let id = match way {
            Way::Fast => "smo.aim.hardship.fast",
            _ => "smo.aim.hardship.stack",
        };
        under_hardship(id, *receivers, sample)
    });
    std::iter::once(many).chain(hardship).collect()
}

/// Makes the claim that all receivers but the killed one have the right file, and that the sender reports
/// that one. The value is 0 if it does not.
fn under_hardship(id: &str, receivers: usize, sample: &Sample) -> Claim {
    let is_reported = sample.failed.len() == 1 && sample.exit_code == Some(1);
    let right = 100.0 * sample.right as f64 / (receivers + 1) as f64;
    let detail = format!(
        "{} files with the right hash, {} frames lost, {} repairs to all and {} to one, {:.1} s; the other: {}; exit \
         code {}.",
        sample.right,
        sample.lost,
        sample.group_repairs,
        sample.own_repairs,
        sample.seconds,
        sample.failed.join(", "),
        sample.exit_code.map_or("none".to_owned(), |code| code.to_string()),
    );
    Claim::new(id, Some(if is_reported { right } else { 0.0 }), detail)
}

/// Number of receivers of the project's own aim.
const MANY: usize = 1_000;

#[cfg(test)]
mod tests;
