//! The paper's figures 5 and 6 with verdicts, and the comparable part of figure 8.

use rxo_console::numbers::ratio;
use rxo_demo::stats::Spread;

use super::Measured;
use super::category::Category;
use super::cost::{Case, Cost};
use super::paper;
use super::real::Sample;
use super::sender::Way;
use super::times::Times;
use crate::claim::{Basis, Claim};
use crate::figure::{Bracket, Figure, Guide, Series};

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
    let claims = growths(SIMULATED, percent);
    let series = [line(Way::Fast, "with the fast path", 1), line(Way::Stack, "without", 0)];
    Some(Figure {
        number: "5 simulated",
        title: "Time of a transfer on virtual time",
        fixed: "at the knee, one instruction a nanosecond",
        // On virtual time, with counted costs, which may differ a little from one processor to another.
        basis: Basis::Count,
        x_label: X,
        y_label: Y,
        series: series.into_iter().chain(papers(&receivers)).collect(),
        x: receivers.iter().map(usize::to_string).collect(),
        guides: vec![LINK],
        claims,
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
    let (papers, claims) = match number {
        KNEE => (papers(&receivers), growths(AT_KNEE, median)),
        _ => (Vec::new(), vec![link_bound(median)]),
    };
    let series = [boxes(Way::Fast, "with the fast path", 1), boxes(Way::Stack, "without", 0)];
    (!times.is_empty()).then(|| Figure {
        number,
        title,
        fixed,
        basis: Basis::Live,
        x_label: X,
        y_label: Y,
        x: receivers.iter().map(usize::to_string).collect(),
        series: series.into_iter().chain(papers).collect(),
        guides: vec![LINK],
        claims,
        ..Figure::default()
    })
}

/// Makes the claims `ids` about growth from 88 receivers to 168, with the fast path and without. `percent`
/// returns the time of a way and a number of receivers; `None` if it was not measured.
fn growths(ids: [&str; 2], percent: impl Fn(Way, usize) -> Option<f64>) -> Vec<Claim> {
    let growth = |way: Way| {
        let (few, many) = percent(way, paper::FEWEST).zip(percent(way, paper::MOST))?;
        Some(100.0 * (ratio(many, few) - 1.0))
    };
    let all = ids.into_iter().zip([Way::Fast, Way::Stack]);
    all.map(|(id, way)| Claim::new(id, growth(way), None)).collect()
}

const SIMULATED: [&str; 2] = ["smo.fig5.simulated.with", "smo.fig5.simulated.without"];
const AT_KNEE: [&str; 2] = ["smo.fig5.knee.with", "smo.fig5.knee.without"];

/// Makes the claim about growth in namespaces, where the link's rate is the limit whatever the sender costs.
fn link_bound(percent: impl Fn(Way, usize) -> Option<f64>) -> Claim {
    let both = percent(Way::Fast, paper::FEWEST).zip(percent(Way::Fast, paper::MOST));
    let grown = both.map(|(few, many)| 100.0 * (ratio(many, few) - 1.0));
    Claim::new("smo.fig5.namespaces", grown, None)
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
        claims: savings(without, with),
        ..Figure::default()
    })
}

fn savings(without: &Cost, with: &Cost) -> Vec<Claim> {
    let saved = |(before, after): (f64, f64)| 100.0 * (1.0 - ratio(after, before));
    let part = |category: Category| {
        let at = category as usize;
        (without.parts[at], with.parts[at])
    };
    let percent = |category| format!("{:.0} %", saved(part(category)));
    let (block, aggregate) = (part(Category::Block).0, part(Category::Aggregate).0);
    // Without lines of source every part is zero.
    let has_parts = block > 0.0;
    let instructions = (without.ack, with.ack);
    let cycles = without.cycles.zip(with.cycles);
    let sync = Some(part(Category::Sync)).filter(|(before, _)| *before > 0.0);
    let of = |(before, after): (f64, f64)| format!("{before:.0} without, {after:.0} with.");
    vec![
        Claim::new("smo.fig6.instructions", Some(saved(instructions)), of(instructions)).because(
            || {
                format!(
                    "RX alone saves {}, memory {}. Block and aggregate, {:.0} instructions, are the same on both ways.",
                    percent(Category::Rx),
                    percent(Category::Memory),
                    block + aggregate
                )
            },
        ),
        Claim::new("smo.fig6.cycles", cycles.map(saved), cycles.map(of)),
        Claim::new("smo.fig6.sync", sync.map(saved).filter(|_| has_parts), sync.map(of)),
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

/// Draws the misses of the second cache for an acknowledgement. The paper compares one core with several; here
/// there is one, so that its claims are not repeated.
fn misses(costs: &[Cost]) -> Option<Figure> {
    simulated_caches(costs, |cost| cost.misses).map(|series| Figure {
        number: "8 on one core",
        title: "Second cache's misses of an acknowledgement, simulated",
        y_label: "misses per ACK",
        series,
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
            Way::Stack => "smo.aim.hardship.stack",
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
