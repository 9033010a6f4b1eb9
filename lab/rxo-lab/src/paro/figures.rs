//! The paper's tables and figures with verdicts, which are computed from the counts.

use rxo_console::numbers::ratio;
use rxo_demo::stats::Spread;
use rxo_testbed::median_bounds;

use super::Measured;
use super::case::{AckRate, Case, Way, size};
use super::category::Component;
use super::count::Cost;
use super::live::Window;
use super::paper::{self, CLAIMS, PROFILED_BYTES, SIZES, table_1};
use crate::claim::{Claim, Ours};
use crate::figure::{Figure, Series};

/// Returns every figure that was measured.
pub(super) fn all(measured: &Measured) -> Vec<Figure> {
    let Measured { costs, cycles, windows } = measured;
    let figures = [
        requests(costs, AckRate::Second),
        requests(costs, AckRate::Merged),
        savings(costs),
        shares(costs),
        profile(cycles, FIGURE_3),
        profile(costs, FIGURE_4),
        acks(costs),
        live(windows),
    ];
    figures.into_iter().flatten().collect()
}

/// Returns the count of `case`; `None` if it was not counted.
pub(super) fn find(costs: &[Cost], case: Case) -> Option<&Cost> {
    costs.iter().find(|cost| cost.case == case)
}

/// Returns the reduction from `before` to `now`, in percent.
pub(super) fn saved_percent(before: f64, now: f64) -> f64 {
    100.0 * (1.0 - ratio(now, before))
}

fn at(costs: &[Cost], way: Way, file_bytes: u64) -> Option<&Cost> {
    find(costs, Case { way, file_bytes, acks: AckRate::Second })
}

/// Returns the host's cost of receiving an ACK, without memory operations.
pub(super) fn an_ack(cost: &Cost) -> f64 {
    let receiving = cost.component(Component::DriverRx) + cost.component(Component::NetworkRx);
    ratio(receiving, cost.acks_a_request)
}

/// Returns the file sizes that were counted with `acks`, ascending.
fn sizes(costs: &[Cost], acks: AckRate) -> Vec<u64> {
    let is_counted =
        |bytes: &u64| find(costs, Case { way: Way::Stack, file_bytes: *bytes, acks }).is_some();
    SIZES.into_iter().map(|(bytes, _)| bytes).filter(is_counted).collect()
}

/// Table 1: draws the cost of a request over the file size.
fn requests(costs: &[Cost], acks: AckRate) -> Option<Figure> {
    let sizes = sizes(costs, acks);
    sizes.last()?;
    let line = |way: Way| {
        let of =
            |&file_bytes: &u64| Some(find(costs, Case { way, file_bytes, acks })?.total() / 1e6);
        Series::new(way.title(), sizes.iter().map(of).collect()).bars().colour(way as usize)
    };
    let paper = |place: usize| {
        sizes.iter().map(|&bytes| table_1(bytes).map(|values| values[place])).collect()
    };
    let mut series: Vec<Series> = Way::ALL.into_iter().map(line).collect();
    let (number, claims) = match acks {
        AckRate::Second => {
            let colour = |way: Way| way as usize;
            let without = Series::reference("paper, without, million cycles", paper(0));
            let with = Series::reference("paper, with, million cycles", paper(1));
            series.push(without.bars().colour(colour(Way::Stack)));
            series.push(with.bars().colour(colour(Way::FastPath)));
            let saves = SIZES.iter().zip(CLAIMS);
            let saves = saves.map(|((bytes, _), id)| saves_of(costs, *bytes, id));
            let best = saved_by(costs, Way::Batches, PROFILED_BYTES, AckRate::Second);
            let best = Claim::new("paro.table1.best", best, None);
            ("Table 1", saves.chain([best, grows(costs, &sizes)]).collect())
        }
        AckRate::Merged => ("Table 1 merged", Vec::new()),
    };
    Some(Figure {
        number,
        x: sizes.iter().map(|&bytes| size(bytes)).collect(),
        series,
        claims,
        ..Figure::default()
    })
}

fn saved_by(costs: &[Cost], way: Way, file_bytes: u64, acks: AckRate) -> Option<f64> {
    let of = |way| find(costs, Case { way, file_bytes, acks });
    Some(saved_percent(of(Way::Stack)?.total(), of(way)?.total()))
}

/// Makes the claim about the saving of the fast path, at the paper's mix of a request.
fn saves_of(costs: &[Cost], file_bytes: u64, id: &str) -> Claim {
    let both = at(costs, Way::Stack, file_bytes).zip(at(costs, Way::FastPath, file_bytes));
    let of = |way| saved_by(costs, way, file_bytes, AckRate::Second);
    let detail = of(Way::FastPath).zip(of(Way::Batches)).map(|(single, batches)| {
        format!(
            "Of a request here it is {single:.1} %, in batches {batches:.1} %, because receiving is more of it."
        )
    });
    Claim::new(id, both.map(|(stack, fast)| at_papers_mix(stack, fast)), detail)
}

/// Returns the saving of a request whose parts have the paper's shares, in percent: what receiving and memory
/// save here, weighted by [`paper::MIX`].
fn at_papers_mix(stack: &Cost, fast: &Cost) -> f64 {
    let memory = [stack, fast].map(|cost| cost.component(Component::Memory));
    let saved =
        [saved_percent(receiving(stack), receiving(fast)), saved_percent(memory[0], memory[1])];
    paper::MIX.iter().zip(saved).map(|(share, saved)| share * saved / 100.0).sum()
}

fn receiving(cost: &Cost) -> f64 {
    cost.component(Component::DriverRx) + cost.component(Component::NetworkRx)
}

/// Makes the claim that larger files save more: the growth from the first size to the last, and the least step.
fn grows(costs: &[Cost], sizes: &[u64]) -> Claim {
    let saved = |bytes: &u64| saved_by(costs, Way::FastPath, *bytes, AckRate::Second);
    let all: Vec<f64> = sizes.iter().filter_map(saved).collect();
    let least = all.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min);
    let ours = least.zip(all.first().zip(all.last())).map(|(least, (first, last))| {
        let grown = last - first;
        Ours::between(grown, (least, grown), all.len())
    });
    let shown: Vec<String> = sizes
        .iter()
        .zip(&all)
        .map(|(bytes, saved)| format!("{saved:.1} % at {}", size(*bytes)))
        .collect();
    Claim::new("paro.table1.grows", ours, format!("{}.", shown.join(", ")))
}

/// Draws the saving over the file size: the last column of Table 1.
fn savings(costs: &[Cost]) -> Option<Figure> {
    let sizes = sizes(costs, AckRate::Second);
    if sizes.len() < 2 {
        return None;
    }
    let line = |way: Way, acks: AckRate| {
        let of = |&bytes: &u64| saved_by(costs, way, bytes, acks);
        let name = match acks {
            AckRate::Second => way.title().to_owned(),
            AckRate::Merged => format!("{}, merged ACKs", way.title()),
        };
        Series::new(name, sizes.iter().map(of).collect())
    };
    let ways = [Way::FastPath, Way::Records, Way::Batches];
    let mut series: Vec<_> =
        ways.into_iter().map(|way| line(way, AckRate::Second).colour(way as usize)).collect();
    if !self::sizes(costs, AckRate::Merged).is_empty() {
        series.push(line(Way::Batches, AckRate::Merged).colour(5));
    }
    let paper = sizes.iter().map(|&bytes| table_1(bytes).map(|[.., saved]| saved));
    series.push(
        Series::reference("paper, of cycles", paper.collect()).colour(Way::FastPath as usize),
    );
    Some(Figure {
        number: "saved",
        x: sizes.iter().map(|&bytes| size(bytes)).collect(),
        series,
        ..Figure::default()
    })
}

/// Figure 1: draws the shares of a request's instructions by component.
fn shares(costs: &[Cost]) -> Option<Figure> {
    let sizes = sizes(costs, AckRate::Second);
    let of = |&file_bytes: &u64| {
        find(costs, Case { way: Way::Stack, file_bytes, acks: AckRate::Second })
    };
    let stacks: Vec<&Cost> = sizes.iter().filter_map(of).collect();
    let largest = stacks.last()?;
    let share = |cost: &Cost, component| 100.0 * ratio(cost.component(component), cost.total());
    let part = |component: Component| {
        let values = stacks.iter().map(|cost| Some(share(cost, component))).collect();
        Series::new(component.name(), values).stack()
    };
    let [rx, memory] = [Component::NetworkRx, Component::Memory].map(|part| share(largest, part));
    let fewest = stacks.iter().map(|cost| cost.pure_acks_percent).fold(f64::INFINITY, f64::min);
    let at_size = || format!("Of the instructions at {}.", size(largest.case.file_bytes));
    Some(Figure {
        number: "1",
        x: sizes.iter().map(|&bytes| size(bytes)).collect(),
        series: Component::ALL.into_iter().map(part).collect(),
        claims: vec![
            Claim::new("paro.fig1.rx", Some(rx), at_size()),
            Claim::new("paro.fig1.memory", Some(memory), at_size()),
            Claim::new("paro.fig1.pure-acks", Some(fewest), None),
        ],
        ..Figure::default()
    })
}

/// Figures 3 and 4: draws the components of the four ways, and the savings in three of them.
fn profile(costs: &[Cost], drawn: Profile) -> Option<Figure> {
    let of = |way| at(costs, way, PROFILED_BYTES);
    let ways: Vec<(Way, &Cost)> =
        Way::ALL.into_iter().filter_map(|way| Some((way, of(way)?))).collect();
    let (stack, fast) = (of(Way::Stack)?, of(Way::FastPath)?);
    let part = |component: Component| {
        let values = ways.iter().map(|(_, cost)| Some(cost.component(component) / 1e3));
        Series::new(component.name(), values.collect()).stack()
    };
    let claim = |(component, id): &(Component, &str)| {
        let saved =
            |cost: &Cost| saved_percent(stack.component(*component), cost.component(*component));
        let also = of(Way::Batches).map(|cost| format!("In batches by {:.1} %.", saved(cost)));
        Claim::new(id, Some(saved(fast)), also)
    };
    let mut claims: Vec<Claim> = drawn.claims.iter().map(claim).collect();
    if stack.is_simulated {
        claims.push(Claim::new("paro.table1.cycles", Some(at_papers_mix(stack, fast)), None));
    }
    Some(Figure {
        number: drawn.number,
        x: ways.iter().map(|(way, _)| way.title().to_owned()).collect(),
        series: Component::ALL.into_iter().map(part).collect(),
        claims,
        ..Figure::default()
    })
}

/// A figure of components.
#[derive(Clone, Copy)]
struct Profile {
    number: &'static str,
    /// The claims about components.
    claims: &'static [(Component, &'static str)],
}

const FIGURE_3: Profile = Profile {
    number: "3",
    claims: &[
        (Component::DriverRx, "paro.fig3.driver-rx"),
        (Component::NetworkRx, "paro.fig3.network-rx"),
        (Component::Memory, "paro.fig3.memory"),
    ],
};
const FIGURE_4: Profile = Profile {
    number: "4",
    claims: &[
        (Component::NetworkRx, "paro.fig4.network-rx"),
        (Component::Memory, "paro.fig4.memory"),
    ],
};

/// Draws the cost of an ACK in the receiving part of the host.
fn acks(costs: &[Cost]) -> Option<Figure> {
    let of = |way| find(costs, Case { way, file_bytes: PROFILED_BYTES, acks: AckRate::Second });
    let ways: Vec<(Way, &Cost)> =
        Way::ALL.into_iter().filter_map(|way| Some((way, of(way)?))).collect();
    let (stack, fast) = (an_ack(of(Way::Stack)?), an_ack(of(Way::FastPath)?));
    let batches = an_ack(of(Way::Batches)?);
    let records = of(Way::Records).map(an_ack);
    let driver = of(Way::FastPath)
        .map_or(0.0, |cost| ratio(cost.component(Component::DriverRx), cost.acks_a_request));
    let part = |component: Component| {
        let values = ways
            .iter()
            .map(|(_, cost)| Some(ratio(cost.component(component), cost.acks_a_request)));
        Series::new(component.name(), values.collect()).stack()
    };
    Some(Figure {
        number: "ack",
        x: ways.iter().map(|(way, _)| way.title().to_owned()).collect(),
        series: [Component::DriverRx, Component::NetworkRx].into_iter().map(part).collect(),
        claims: vec![
            Claim::new(
                "paro.ack",
                Some(saved_percent(stack, fast)),
                format!("{stack:.0} without, {fast:.0} with the fast path."),
            )
            .because(|| {
                format!(
                    "Of these {driver:.0} are the driver's, which copies a frame out of the ring before it is looked \
                     at. {}",
                    in_batches(stack, batches, records)
                )
            }),
        ],
        ..Figure::default()
    })
}

/// Returns a sentence about the cost of an ACK if a connection receives all ACKs of a batch at once.
fn in_batches(stack: f64, batches: f64, records: Option<f64>) -> String {
    let default = records.map_or_else(String::new, |records| {
        format!(" The default without a fast path, records, takes {records:.0}.")
    });
    let percent = 100.0 * ratio(batches, stack);
    format!("In batches an ACK takes {batches:.0}, {percent:.0} % of the stack's.{default}")
}

/// Draws the live server's processor time.
fn live(windows: &[(Way, Vec<Window>)]) -> Option<Figure> {
    let spreads: Vec<(Way, Spread)> = windows
        .iter()
        .filter_map(|(way, all)| Some((*way, Spread::over(all, |one| one.us_a_request)?)))
        .collect();
    let of = |way| spreads.iter().find(|(one, _)| *one == way).map(|(_, spread)| *spread);
    let (stack, batches) = (of(Way::Stack)?, of(Way::Batches)?);
    let left = ratio(batches.median, stack.median);
    let rounds = windows.iter().map(|(_, all)| all.len()).min().unwrap_or_default();
    // Too few rounds decide nothing.
    let bounds = compared(windows).unwrap_or((0.0, f64::MAX));
    let detail = format!(
        "{:.0} us without, {:.0} with the fast path in batches: {:.1} % saved. The interval is that of both in the \
         same round, at 95 %.",
        stack.median,
        batches.median,
        100.0 * (1.0 - left)
    );
    let claim = Claim::new("paro.live", Some(Ours::between(left, bounds, rounds)), detail);
    Some(Figure {
        number: "live",
        x: spreads.iter().map(|(way, _)| way.title().to_owned()).collect(),
        series: vec![
            Series::of_spreads("here", spreads.iter().map(|(_, spread)| Some(*spread)).collect())
                .bars(),
        ],
        claims: vec![claim],
        ..Figure::default()
    })
}

/// Returns the bounds of the median ratio of batches to stack. Each ratio is of two windows in the same
/// round, a few seconds apart.
fn compared(windows: &[(Way, Vec<Window>)]) -> Option<(f64, f64)> {
    let of = |way| windows.iter().find(|(one, _)| *one == way).map(|(_, all)| all);
    let pairs = of(Way::Batches)?.iter().zip(of(Way::Stack)?);
    median_bounds(
        &pairs.map(|(ours, stack)| ours.us_a_request / stack.us_a_request).collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests;
