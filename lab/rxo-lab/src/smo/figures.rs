//! The paper's figures 5 and 6 with verdicts, and the comparable part of figure 8.

use rxo_console::numbers::ratio;
use rxo_demo::stats::Spread;

use super::category::Category;
use super::cost::{Case, Cost};
use super::findings::{Measured, Times};
use super::paper;
use super::sender::Way;
use crate::figure::{Bracket, Figure, Guide, Series};
use crate::statement::Statement;

/// Returns every figure that was measured.
pub(super) fn all(measured: &Measured) -> Vec<Figure> {
    let figures = [
        simulated(measured),
        live(&measured.knee, KNEE, "Time of a transfer at the knee", "between two cores"),
        live(&measured.real, REAL, "Time of a transfer in namespaces", "link of 40 Mbit/s"),
        components(&measured.costs),
        by_receivers(&measured.costs),
        cycles(&measured.costs),
        misses(&measured.costs),
    ];
    figures.into_iter().flatten().collect()
}

/// Figures whose verdicts depend on time.
pub(super) const TIMED: [&str; 2] = [KNEE, REAL];
const KNEE: &str = "5 at the knee";
const REAL: &str = "5 in namespaces";

/// Returns the paper's times for each number of receivers, in percent of the minimum.
fn papers(receivers: &[usize]) -> Vec<Series> {
    let of = |place: usize| {
        let value = |count: &usize| {
            let (_, times) = paper::TIMES.iter().find(|(at, _)| at == count)?;
            Some(100.0 * times[place] / paper::LEAST_S)
        };
        receivers.iter().map(value).collect::<Vec<_>>()
    };
    let series = [("paper, with TCP-PARO", 0), ("paper, without", 1)];
    let series = series.into_iter().filter(|_| receivers.contains(&paper::FEWEST));
    series.map(|(name, place)| Series::reference(name, of(place)).colour(1 - place)).collect()
}

const LINK: Guide = Guide { value: 100.0, meaning: "the link alone" };
const X: &str = "receivers";
const Y: &str = "time, percent of the least";

fn simulated(measured: &Measured) -> Option<Figure> {
    let casts = &measured.simulated;
    let rate = measured.simulated_rate?;
    let mut receivers: Vec<usize> = casts.iter().map(|cast| cast.receivers).collect();
    receivers.sort_unstable();
    receivers.dedup();
    let percent = |way: Way, count: usize| {
        let cast = casts.iter().find(|cast| cast.way == way && cast.receivers == count)?;
        let least = super::model::least_time(cast.bytes, rate).as_secs_f64();
        Some(100.0 * cast.seconds / least)
    };
    let line = |way: Way, name: &str, colour| {
        let values = receivers.iter().map(|count| percent(way, *count)).collect();
        Series::new(name, values).colour(colour)
    };
    let statements = growths(percent);
    let series = [line(Way::Fast, "with the fast path", 1), line(Way::Stack, "without", 0)];
    Some(Figure {
        number: "5 simulated",
        title: "Time of a transfer on virtual time",
        fixed: "at the knee, one instruction a nanosecond",
        x_label: X,
        y_label: Y,
        series: series.into_iter().chain(papers(&receivers)).collect(),
        x: receivers.iter().map(usize::to_string).collect(),
        guides: vec![LINK],
        statements,
        ..Figure::default()
    })
}

fn live(
    times: &[Times],
    number: &'static str,
    title: &'static str,
    fixed: &'static str,
) -> Option<Figure> {
    let mut receivers: Vec<usize> = times.iter().map(|times| times.case.1).collect();
    receivers.sort_unstable();
    receivers.dedup();
    let of = |way: Way, count: usize| times.iter().find(|times| times.case == (way, count));
    let boxes = |way: Way, name: &str, colour| {
        let samples: Vec<Vec<f64>> = receivers
            .iter()
            .map(|count| of(way, *count).map(Times::percent).unwrap_or_default())
            .collect();
        Series::boxes(name, &samples).colour(colour)
    };
    let median = |way: Way, count: usize| Some(Spread::of(of(way, count)?.percent())?.median);
    // In namespaces the link is far slower than the knee, so the paper's values and claims do not apply.
    let (papers, statements) = match number {
        KNEE => (papers(&receivers), growths(median)),
        _ => (Vec::new(), link_bound(median)),
    };
    let series = [boxes(Way::Fast, "with the fast path", 1), boxes(Way::Stack, "without", 0)];
    (!times.is_empty()).then(|| Figure {
        number,
        title,
        fixed,
        x_label: X,
        y_label: Y,
        x: receivers.iter().map(usize::to_string).collect(),
        series: series.into_iter().chain(papers).collect(),
        guides: vec![LINK],
        statements,
        ..Figure::default()
    })
}

/// Decides the claims about growth from 88 receivers to 168. `percent` returns the time of a way and a number
/// of receivers; `None` if it was not measured.
fn growths(percent: impl Fn(Way, usize) -> Option<f64>) -> Vec<Statement> {
    let growth = |way: Way| {
        let (few, many) = percent(way, paper::FEWEST).zip(percent(way, paper::MOST))?;
        Some(100.0 * (ratio(many, few) - 1.0))
    };
    let Some((with, without)) = growth(Way::Fast).zip(growth(Way::Stack)) else {
        return Vec::new();
    };
    let claims = [
        "with TCP-PARO the time grows by 5.6 % when receivers nearly double from 88 to 168",
        "without it the time grows by 12.6 %",
    ];
    let found = [format!("{with:+.1} %."), format!("{without:+.1} %.")];
    let saturated = percent(Way::Stack, paper::MOST).is_some_and(|percent| percent >= SATURATED);
    if !saturated {
        let why = || "The sender without the fast path was not saturated.".to_owned();
        let undecided = |(claim, found)| Statement::undecided(claim, found, why());
        return claims.into_iter().zip(found).map(undecided).collect();
    }
    // The link's rate was chosen so that the sender without the fast path is saturated.
    let all = claims.into_iter().zip(found);
    all.map(|(claim, found)| Statement::calibration(claim, found)).collect()
}

/// Time in percent of the link's minimum from which a sender counts as saturated.
const SATURATED: f64 = 106.0;

/// Returns the growth in namespaces, where the link's rate is the limit whatever the sender costs.
fn link_bound(percent: impl Fn(Way, usize) -> Option<f64>) -> Vec<Statement> {
    let both = percent(Way::Fast, paper::FEWEST).zip(percent(Way::Fast, paper::MOST));
    let claim = "\"reliable multicast can be scaled to non-trivial receiver group sizes\": 168 receivers take at most 5.6 % \
                 longer than 88";
    both.map(|(few, many)| {
        let grown = 100.0 * (ratio(many, few) - 1.0);
        Statement::calibration(claim, format!("{grown:+.1} %."))
    })
    .into_iter()
    .collect()
}

/// Draws the cost of an acknowledgement, by component.
fn components(costs: &[Cost]) -> Option<Figure> {
    let most =
        costs.iter().map(|cost| cost.case.receivers).filter(|it| *it <= paper::MOST).max()?;
    let of = |way| costs.iter().find(|cost| cost.case == Case { way, receivers: most });
    let (without, with) = of(Way::Stack).zip(of(Way::Fast))?;
    let both = [without, with];
    let part = |category: Category| {
        let values = both.iter().map(|cost| Some(cost.parts[category as usize])).collect();
        Series::new(category.name(), values).stack()
    };
    let brackets =
        both.iter().zip(0..).map(|(cost, place)| Bracket { place, to: cost.ack, name: "an ACK" });
    Some(Figure {
        number: "6",
        title: "Instructions of an acknowledgement, by component",
        fixed: if most == paper::MOST {
            "168 receivers; the paper has 160"
        } else {
            "few receivers"
        },
        x_label: "sender",
        y_label: "instructions per ACK",
        x: vec!["without".into(), "with the fast path".into()],
        series: Category::ALL.into_iter().map(part).collect(),
        brackets: brackets.collect(),
        statements: savings(without, with),
        ..Figure::default()
    })
}

fn savings(without: &Cost, with: &Cost) -> Vec<Statement> {
    let saved = |before: f64, after: f64| 100.0 * (1.0 - ratio(after, before));
    let part = |category: Category| {
        let at = category as usize;
        (without.parts[at], with.parts[at])
    };
    let all = saved(without.ack, with.ack);
    let (sync, after) = part(Category::Sync);
    let (block, _) = part(Category::Block);
    let (aggregate, _) = part(Category::Aggregate);
    let of = |(before, after): (f64, f64)| format!("{:.0} %", saved(before, after));
    let in_cycles = without.cycles.zip(with.cycles);
    vec![
        Statement::new(
            "\"nearly 50 % cycles and instructions are saved\": instructions",
            (without.parts[Category::Block as usize] > 0.0).then_some(all >= paper::SAVED),
            format!("{all:.1} %: {:.0} instructions without, {:.0} with.", without.ack, with.ack),
        )
        .unless_it_holds(|| {
            format!(
                "RX alone saves {}, memory {}. Block and aggregate, {:.0} instructions, are the same on both ways.",
                of(part(Category::Rx)),
                of(part(Category::Memory)),
                block + aggregate
            )
        }),
        Statement::new(
            "\"nearly 50 % cycles and instructions are saved\": cycles",
            in_cycles.map(|(before, after)| saved(before, after) >= paper::SAVED),
            in_cycles.map_or("Cycles were not simulated.".to_owned(), |(before, after)| {
                let saved = saved(before, after);
                format!("{saved:.1} % as callgrind estimates them: {before:.0} without, {after:.0} with.")
            }),
        ),
        Statement::new(
            "synchronization overhead falls by 50 %",
            (sync > 0.0).then(|| saved(sync, after) >= paper::SYNC_SAVED),
            format!("{:.0} %: {sync:.0} instructions without, {after:.0} with.", saved(sync, after)),
        )
        .unless_it_holds(|| {
            "What is left is the cell's lock, one try for an ACK on both ways: the residual cost that the paper names, too."
                .to_owned()
        }),
    ]
}

/// Draws the cost of an acknowledgement, by the number of receivers.
fn by_receivers(costs: &[Cost]) -> Option<Figure> {
    let mut receivers: Vec<usize> = costs.iter().map(|cost| cost.case.receivers).collect();
    receivers.sort_unstable();
    receivers.dedup();
    let line = |way: Way, name: &str, colour| {
        let of = |count: &usize| {
            let case = Case { way, receivers: *count };
            costs.iter().find(|cost| cost.case == case).map(|cost| cost.ack)
        };
        Series::new(name, receivers.iter().map(of).collect()).bars().colour(colour)
    };
    (receivers.len() > 1).then(|| Figure {
        number: "6 by receivers",
        title: "Instructions of an acknowledgement, by receivers",
        fixed: "one ACK of each in a round",
        x_label: X,
        y_label: "instructions per ACK",
        series: vec![line(Way::Fast, "with the fast path", 1), line(Way::Stack, "without", 0)],
        x: receivers.iter().map(usize::to_string).collect(),
        ..Figure::default()
    })
}

/// Draws the cost of an acknowledgement in simulated cycles, for the paper's numbers of receivers.
fn cycles(costs: &[Cost]) -> Option<Figure> {
    simulated_caches(costs, |cost| cost.cycles).map(|series| Figure {
        number: "6 in cycles",
        title: "Cycles of an acknowledgement, simulated",
        y_label: "cycles per ACK, estimated",
        series,
        ..caches()
    })
}

/// Draws the misses of the second cache for an acknowledgement. The paper compares one core with several; here there is
/// one.
fn misses(costs: &[Cost]) -> Option<Figure> {
    let grown = |of: fn(&Cost) -> Option<f64>| {
        [Way::Stack, Way::Fast].map(|way| {
            let at = |receivers| find(costs, way, receivers).and_then(of);
            let both = at(paper::FEWEST).zip(at(paper::MOST));
            both.map_or(0.0, |(few, many)| 100.0 * (ratio(many, few) - 1.0))
        })
    };
    let ours = |what: &str, [without, with]: [f64; 2]| {
        format!(
            "A cast has one core. From 88 receivers to 168 {what} of an ACK grow by {without:.0} % without the fast path, \
             by {with:.0} % with it."
        )
    };
    let (of_misses, of_cycles) = (grown(|cost| cost.misses), grown(|cost| cost.cycles));
    let [without, with, cycles] = paper::SEVERAL_CORES;
    let statements = vec![
        Statement::new(without, None, ours("the misses", of_misses)),
        Statement::new(with, None, ours("the misses", of_misses)),
        Statement::new(cycles, None, ours("the cycles", of_cycles)),
    ];
    simulated_caches(costs, |cost| cost.misses).map(|series| Figure {
        number: "8 on one core",
        title: "Second cache's misses of an acknowledgement, simulated",
        y_label: "misses per ACK",
        series,
        statements,
        ..caches()
    })
}

fn find(costs: &[Cost], way: Way, receivers: usize) -> Option<&Cost> {
    costs.iter().find(|cost| cost.case == Case { way, receivers })
}

/// Returns a series for each way; `None` if caches were not simulated for the paper's numbers of receivers.
fn simulated_caches(costs: &[Cost], of: fn(&Cost) -> Option<f64>) -> Option<Vec<Series>> {
    let line = |way: Way, name: &str, colour| {
        let at = |count| find(costs, way, count).and_then(of);
        let values = ENDS.map(at);
        let is_whole = values.iter().all(Option::is_some);
        is_whole.then(|| Series::new(name, values.to_vec()).bars().colour(colour))
    };
    Some(vec![line(Way::Fast, "with the fast path", 1)?, line(Way::Stack, "without", 0)?])
}

/// Returns the common part of figures of simulated caches.
fn caches() -> Figure {
    Figure {
        fixed: "caches of 32 and 256 KiB",
        x_label: X,
        x: ENDS.iter().map(usize::to_string).collect(),
        ..Figure::default()
    }
}

const ENDS: [usize; 2] = [paper::FEWEST, paper::MOST];

#[cfg(test)]
mod tests;
