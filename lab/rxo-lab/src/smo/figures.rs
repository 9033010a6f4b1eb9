//! The paper's figures 5 and 6, and the comparable part of figure 8, with their claims.

use rxo_console::numbers::ratio;

use super::cost::{COMPONENTS, Cost};
use super::real::Sample;
use super::sender::{Case, FEWEST, MOST, Way};
use crate::claim::Claim;
use crate::figure::{Bracket, Figure, Guide, Series, Shape};
use crate::scenario::{Cells, Chart};

/// Number of receivers of the project's own aim.
pub(super) const MANY: usize = 1_000;
/// Growth of the transfer time from 88 to 168 receivers without TCP-PARO, in percent (section 4.1).
pub(super) const GROWTH: f64 = 12.6;
/// Figure 5: number of receivers, and the average transfer time with and without TCP-PARO, in seconds.
const TIMES: [(usize, [f64; 2]); 2] = [(FEWEST, [2.93, 3.02]), (MOST, [3.09, 3.40])];
/// Minimum time in which the paper's link carries the file, in seconds.
const LEAST_S: f64 = 2.7;

/// A value of each case, or several of repeated casts.
type Values = Cells<Case, f64>;

/// Draws the costs of an ACK.
pub(super) fn of_costs(costs: &Cells<Case, Cost>) -> Vec<Figure> {
    let acks = costs.map(|cost| Some(cost.ack));
    let figures = [
        components(costs),
        BY_RECEIVERS.figure(&acks).filter(|figure| figure.x.len() > 1),
        CYCLES.figure(&costs.map(|cost| cost.cycles)),
        // The paper compares one core with several; here there is one, so that its claims are not repeated.
        MISSES.figure(&costs.map(|cost| cost.misses)),
    ];
    figures.into_iter().flatten().collect()
}

/// Draws figure 5 on virtual time, from the times in percent of the least.
pub(super) fn simulated(percent: &Values) -> Vec<Figure> {
    let ids = [(Way::Fast, "smo.fig5.simulated.with"), (Way::Stack, "smo.fig5.simulated.without")];
    figure_5(&SIMULATED, percent, &ids)
}

/// Draws figure 5 between cores.
pub(super) fn at_knee(percent: &Values) -> Vec<Figure> {
    let ids = [(Way::Fast, "smo.fig5.knee.with"), (Way::Stack, "smo.fig5.knee.without")];
    figure_5(&KNEE, percent, &ids)
}

/// Draws figure 5 in namespaces.
pub(super) fn in_namespaces(percent: &Values) -> Vec<Figure> {
    figure_5(&REAL, percent, &[(Way::Fast, "smo.fig5.namespaces")])
}

const SIMULATED: Chart<Case, f64> = Chart {
    number: "5 simulated",
    x: |case| case.receivers.to_string(),
    line: |case| case.way.line(),
    value: |value| *value,
    paper: |case| {
        let (_, times) = TIMES.iter().find(|(count, _)| *count == case.receivers)?;
        Some(100.0 * times[usize::from(case.way == Way::Stack)] / LEAST_S)
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

/// Draws a figure 5, with the claims about growth from 88 receivers to 168.
fn figure_5(chart: &Chart<Case, f64>, percent: &Values, ids: &[(Way, &str)]) -> Vec<Figure> {
    let growth = |(way, id): &(Way, &str)| {
        let of = |receivers| percent.median(Case { way: *way, receivers }, |value| *value);
        let both = of(FEWEST).zip(of(MOST));
        Claim::new(id, both.map(|(few, many)| 100.0 * (ratio(many, few) - 1.0)), None)
    };
    let claims: Vec<Claim> = ids.iter().map(growth).collect();
    let figure = chart.figure(percent);
    figure.map(|figure| Figure { claims, guides: vec![LINK], ..figure }).into_iter().collect()
}

/// Draws the cost of an acknowledgement, by component.
fn components(costs: &Cells<Case, Cost>) -> Option<Figure> {
    let counted = costs.samples().map(|(case, _)| case.receivers);
    let receivers = counted.filter(|receivers| *receivers <= MOST).max()?;
    let [stack, mechanism, best] = Way::ALL.map(|way| costs.get(Case { way, receivers }));
    let all = [stack?, mechanism?, best?];
    let part = |name: &&'static str| {
        Series::new(*name, all.iter().map(|cost| Some(cost.parts.of(name))).collect()).stack()
    };
    let brackets =
        all.iter().zip(0..).map(|(cost, place)| Bracket { place, to: cost.ack, name: "an ACK" });
    Some(Figure {
        number: "6",
        x: Way::ALL.map(|way| way.line().to_owned()).to_vec(),
        series: COMPONENTS.iter().map(part).collect(),
        brackets: brackets.collect(),
        claims: savings(all),
        ..Figure::default()
    })
}

/// Makes the claims about savings: the paper's are about its change alone, and ours about rxo's best.
fn savings([without, with, best]: [&Cost; 3]) -> Vec<Claim> {
    let claim = |id: &str, of: fn(&Cost) -> Option<f64>, with: &Cost| {
        let both = of(without).filter(|before| *before > 0.0).zip(of(with));
        let saved = both.map(|(before, after)| 100.0 * (1.0 - ratio(after, before)));
        let detail = both.map(|(before, after)| format!("{before:.0} without, {after:.0} with."));
        Claim::new(id, saved, detail)
    };
    vec![
        claim("smo.fig6.instructions", |cost| Some(cost.ack), with),
        claim("smo.fig6.cycles", |cost| cost.cycles, with),
        claim("smo.fig6.sync", |cost| Some(cost.parts.of("sync")), with),
        claim("smo.aim.instructions", |cost| Some(cost.ack), best),
        claim("smo.aim.cycles", |cost| cost.cycles, best),
    ]
}

/// Makes the claim about an ACK of 1,000 receivers.
pub(super) fn many(costs: &Cells<Case, Cost>) -> Claim {
    let cost = |receivers| costs.get(Case { way: Way::Fast, receivers }).map(|cost| cost.ack);
    let both = cost(FEWEST).zip(cost(MANY));
    let detail = both.map(|(few, many)| format!("{few:.0} and {many:.0} instructions."));
    Claim::new("smo.aim.many", both.map(|(few, many)| many / few), detail)
}

/// Makes the claim that all receivers but the killed one have the right file, and that the sender reports
/// that one. The value is 0 if it does not.
pub(super) fn hardship(Case { way, receivers }: Case, sample: &Sample) -> Claim {
    let id = match way {
        Way::Fast => "smo.aim.hardship.fast",
        _ => "smo.aim.hardship.stack",
    };
    let is_reported = sample.failed.len() == 1 && sample.exit_code == Some(1);
    let right = 100.0 * sample.right as f64 / (receivers + 1) as f64;
    let detail = format!(
        "{} frames lost, {} repairs to all and {} to one, {:.1} s; the other: {}.",
        sample.lost,
        sample.group_repairs,
        sample.own_repairs,
        sample.seconds,
        sample.failed.join(", "),
    );
    Claim::new(id, Some(if is_reported { right } else { 0.0 }), detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the costs of an ACK to 168 receivers by the stack, by the paper's change, and by rxo's best: instructions
    /// (the same in each component), cycles and misses.
    fn three(mechanism: [f64; 3], best: [f64; 3]) -> Cells<Case, Cost> {
        let cost = |(way, [ack, cycles, misses]): (Way, [f64; 3])| {
            let part = ack / COMPONENTS.len() as f64;
            let cost = Cost {
                parts: COMPONENTS.map(|name| (name, part)).into_iter().collect(),
                ack,
                cycles: Some(cycles),
                misses: Some(misses),
                segment: 1.0,
                consumed: 0.0,
            };
            (Case { way, receivers: MOST }, vec![cost])
        };
        let all = Way::ALL.into_iter().zip([[1_000.0, 3_000.0, 9.0], mechanism, best]);
        Cells::of(all.map(cost).collect())
    }

    fn holds(costs: &Cells<Case, Cost>, number: &str) -> Vec<Option<bool>> {
        of_costs(costs).iter().find(|figure| figure.number == number).unwrap().verdicts()
    }

    /// The paper's verdicts are on its change alone, whatever rxo's best saves.
    #[test]
    fn the_papers_change_is_judged_apart_from_our_best() {
        let of = |mechanism, best| holds(&three(mechanism, best), "6");
        let (yes, no) = (Some(true), Some(false));
        let (good, bad) = ([400.0, 1_000.0, 1.0], [900.0, 2_000.0, 1.0]);
        assert_eq!(of(good, good), [yes; 5]);
        assert_eq!(of(bad, good), [no, no, no, yes, yes], "synchronization with the instructions");
        assert_eq!(of([400.0, 2_000.0, 1.0], bad), [yes, no, yes, no, no]);
    }

    /// The paper's misses are of several cores, while a cast has one.
    #[test]
    fn misses_are_shown_without_a_claim() {
        let costs = three([300.0, 500.0, 15.0], [300.0, 500.0, 10.0]);
        assert!(holds(&costs, "8 on one core").is_empty());
        assert!(holds(&costs, "6 in cycles").is_empty());
    }

    #[test]
    fn growth_at_a_chosen_rate_is_a_calibration() {
        let ends = |way, grown| {
            [(FEWEST, 110.0), (MOST, 110.0 * (1.0 + grown))]
                .map(|(receivers, percent)| (Case { way, receivers }, vec![percent]))
        };
        for [with, without] in [[0.02, 0.2], [0.05, 0.03]] {
            let cells = [ends(Way::Fast, with), ends(Way::Stack, without)].concat();
            let verdicts = at_knee(&Values::of(cells))[0].verdicts();
            assert_eq!(verdicts, [None; 2]);
        }
    }
}
