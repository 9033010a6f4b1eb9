//! The paper's tables and figures with verdicts, which are computed from the counts.

use rxo_console::numbers::ratio;
use rxo_demo::stats::Spread;
use rxo_testbed::median_bounds;

use super::case::{AckRate, Case, Way, size};
use super::category::Component;
use super::count::Cost;
use super::findings::Measured;
use super::live::Window;
use super::paper::{
    self, MEMORY_SHARE, PROFILED_BYTES, PURE_ACKS, RX_SHARE, SAVED_CYCLES, SAVED_INSTRUCTIONS,
    SAVES, SIZES, table_1,
};
use crate::figure::{Figure, Series};
use crate::statement::Statement;

/// Number of the live server's figure, which depends on time.
pub(super) const LIVE: &str = "live";

/// Returns every figure that was measured.
pub(super) fn all(measured: &Measured) -> Vec<Figure> {
    let Measured { costs, cycles, windows } = measured;
    let figures = [
        requests(costs, AckRate::Second),
        requests(costs, AckRate::Merged),
        savings(costs),
        shares(costs),
        profile(cycles, SAVED_CYCLES.map(Some), FIGURE_3),
        profile(costs, SAVED_INSTRUCTIONS, FIGURE_4),
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
    let (number, statements) = match acks {
        AckRate::Second => {
            let colour = |way: Way| way as usize;
            let without = Series::reference("paper, without, million cycles", paper(0));
            let with = Series::reference("paper, with, million cycles", paper(1));
            series.push(without.bars().colour(colour(Way::Stack)));
            series.push(with.bars().colour(colour(Way::FastPath)));
            let saves = SIZES.iter().zip(SAVES).filter(|((bytes, _), _)| sizes.contains(bytes));
            let saves = saves.map(|((bytes, _), claim)| saves_of(costs, *bytes, claim));
            ("Table 1", saves.chain([grows(costs, &sizes)]).collect())
        }
        AckRate::Merged => ("Table 1 merged", Vec::new()),
    };
    Some(Figure {
        number,
        title: "Million instructions of a request",
        fixed: acks.title(),
        x_label: "file",
        y_label: "million instructions a request",
        x: sizes.iter().map(|&bytes| size(bytes)).collect(),
        series,
        statements,
        ..Figure::default()
    })
}

fn saved_by(costs: &[Cost], way: Way, file_bytes: u64, acks: AckRate) -> Option<f64> {
    let of = |way| find(costs, Case { way, file_bytes, acks });
    Some(saved_percent(of(Way::Stack)?.total(), of(way)?.total()))
}

/// Decides whether the fast path saves as large a share of a request as in the paper.
fn saves_of(costs: &[Cost], file_bytes: u64, claim: &'static str) -> Statement {
    let of = |way| saved_by(costs, way, file_bytes, AckRate::Second);
    let paper = table_1(file_bytes).map(|[.., saved]| saved);
    let (Some(single), Some(batches), Some(paper)) = (of(Way::FastPath), of(Way::Batches), paper)
    else {
        return Statement::new(claim, None, "Not all ways were counted.".into());
    };
    let case = |way| find(costs, Case { way, file_bytes, acks: AckRate::Second });
    let like = case(Way::Stack).zip(case(Way::FastPath)).map_or(0.0, |(a, b)| at_papers_mix(a, b));
    let ours = format!(
        "{like:.1} % of the instructions, if receiving and memory are the paper's 20 and 18 % of a request. Of a request \
         here it is {single:.1} %, in batches {batches:.1} %, because receiving is more of it."
    );
    Statement::new(claim, Some(like >= paper), ours).unless_it_holds(|| {
        "The driver copies a frame out of the ring before it is looked at.".into()
    })
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

/// Decides whether larger files save more.
fn grows(costs: &[Cost], sizes: &[u64]) -> Statement {
    let claim = "the saving grows with the size of files, from 14.0 to 16.7 %: by 2.7 points";
    let saved = |bytes: &u64| saved_by(costs, Way::FastPath, *bytes, AckRate::Second);
    let (Some(first), Some(last)) = (sizes.first().and_then(saved), sizes.last().and_then(saved))
    else {
        return Statement::new(claim, None, "Not all sizes were counted.".into());
    };
    let names =
        [sizes.first(), sizes.last()].map(|bytes| bytes.map_or_else(String::new, |it| size(*it)));
    let ours = format!("{first:.1} % at {}, {last:.1} % at {}.", names[0], names[1]);
    Statement::new(claim, (sizes.len() > 1).then_some(last - first >= paper::GROWTH_POINTS), ours)
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
        title: "What is saved of a request",
        fixed: "an ACK for two segments, unless said",
        x_label: "file",
        y_label: "percent of the stack's instructions",
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
    let name = size(largest.case.file_bytes);
    Some(Figure {
        number: "1",
        title: "Where the instructions of a request are, without the fast path",
        fixed: AckRate::Second.title(),
        x_label: "file",
        y_label: "percent of instructions",
        x: sizes.iter().map(|&bytes| size(bytes)).collect(),
        series: Component::ALL.into_iter().map(part).collect(),
        statements: vec![
            Statement::new(
                "20 % of the cycles are network receive processing (held to 15 to 25 %)",
                Some(RX_SHARE.contains(&rx)),
                format!("{rx:.1} % of the instructions at {name}."),
            )
            .unless_it_holds(|| {
                "Sending is cheap here, a GSO frame of lent pages, so receiving is more of a request.".to_owned()
            }),
            Statement::new(
                "18 % of the cycles are memory operations (held to 13.5 to 22.5 %)",
                Some(MEMORY_SHARE.contains(&memory)),
                format!(
                    "{memory:.1} % of the instructions at {name}: frames are copied, but no buffer is allocated for one."
                ),
            ),
            Statement::new(
                "pure ACKs are more than 99 % of all received packets, whatever the size",
                Some(fewest > PURE_ACKS),
                format!("At least {fewest:.1} %."),
            ),
        ],
        ..Figure::default()
    })
}

/// Figures 3 and 4: draws the components of the four ways, and the savings in three of them.
fn profile(
    costs: &[Cost],
    paper: [Option<f64>; 3],
    [number, title, y_label]: [&'static str; 3],
) -> Option<Figure> {
    let of = |way| find(costs, Case { way, file_bytes: PROFILED_BYTES, acks: AckRate::Second });
    let ways: Vec<(Way, &Cost)> =
        Way::ALL.into_iter().filter_map(|way| Some((way, of(way)?))).collect();
    let (stack, fast) = (of(Way::Stack)?, of(Way::FastPath)?);
    let part = |component: Component| {
        let values = ways.iter().map(|(_, cost)| Some(cost.component(component) / 1e3));
        Series::new(component.name(), values.collect()).stack()
    };
    let claims = [
        "driver RX falls by 25 %",
        "network RX falls by 53 % of cycles and 51 % of instructions",
        "memory falls by 20 % of cycles and 24 % of instructions",
    ];
    let batches = of(Way::Batches);
    let statements = Component::SAVED.into_iter().zip(claims).zip(paper).filter_map(
        |((component, claim), least)| {
            let saved = saved_percent(stack.component(component), fast.component(component));
            let also = batches.map_or_else(String::new, |cost| {
                let saved = saved_percent(stack.component(component), cost.component(component));
                format!(" In batches by {saved:.1} %.")
            });
            let ours = format!("{} falls by {saved:.1} %.{also}", capital(component.name()));
            least.map(|least| Statement::new(claim, Some(saved >= least), ours))
        },
    );
    Some(Figure {
        number,
        title,
        fixed: "files of 2 MB, an ACK for two segments",
        x_label: "way",
        y_label,
        x: ways.iter().map(|(way, _)| way.title().to_owned()).collect(),
        series: Component::ALL.into_iter().map(part).collect(),
        statements: statements.collect(),
        ..Figure::default()
    })
}

const FIGURE_3: [&str; 3] =
    ["3", "Thousand estimated cycles of a request, by component", "thousand estimated cycles"];
const FIGURE_4: [&str; 3] =
    ["4", "Thousand instructions of a request, by component", "thousand instructions"];

fn capital(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

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
        title: "Instructions for receiving an ACK",
        fixed: "files of 2 MB, an ACK for two segments",
        x_label: "way",
        y_label: "instructions an ACK",
        x: ways.iter().map(|(way, _)| way.title().to_owned()).collect(),
        series: [Component::DriverRx, Component::NetworkRx].into_iter().map(part).collect(),
        statements: vec![Statement::new(
            "nearly 50 % of an ACK's instructions are saved (Figure 6)",
            Some(fast <= 0.5 * stack),
            format!("{stack:.0} without, {fast:.0} with the fast path."),
        )
        .unless_it_holds(|| {
            format!(
                "Of these {driver:.0} are the driver's, which copies a frame out of the ring before it is looked at. {}",
                only_in_batches(stack, batches, records)
            )
        })],
        ..Figure::default()
    })
}

/// Returns a sentence about the cost of an ACK if a connection receives all ACKs of a batch at once.
fn only_in_batches(stack: f64, batches: f64, records: Option<f64>) -> String {
    let verdict = if batches <= 0.5 * stack { "it holds" } else { "it does not hold either" };
    let default = records.map_or_else(String::new, |records| {
        format!(" The default without a fast path, records, takes {records:.0}.")
    });
    let percent = 100.0 * ratio(batches, stack);
    format!("In batches {verdict}: {batches:.0}, {percent:.0} % of the stack's.{default}")
}

/// Draws the live server's processor time.
fn live(windows: &[(Way, Vec<Window>)]) -> Option<Figure> {
    let spreads: Vec<(Way, Spread)> = windows
        .iter()
        .filter_map(|(way, all)| Some((*way, Spread::over(all, |one| one.us_a_request)?)))
        .collect();
    let of = |way| spreads.iter().find(|(one, _)| *one == way).map(|(_, spread)| *spread);
    let (stack, batches) = (of(Way::Stack)?, of(Way::Batches)?);
    let saved = saved_percent(stack.median, batches.median);
    let claim = "a request of 2 MB takes 15.3 % fewer cycles with the fast path";
    let ours = format!(
        "{:.0} us without, {:.0} with the fast path in batches: {saved:.1} % saved.",
        stack.median, batches.median
    );
    let statement = match compared(windows) {
        Some((low, high)) if high <= paper::LEFT || low > paper::LEFT => {
            let beside = format!(
                "{ours} Beside the stack in the same round: {low:.3} to {high:.3} at 95 %."
            );
            Statement::new(claim, Some(high <= paper::LEFT), beside)
        }
        _ => {
            let why = "Chance may have decided that: too few rounds agree.".to_owned();
            Statement::undecided(claim, ours, why)
        }
    };
    Some(Figure {
        number: LIVE,
        title: "Processor time of a request, live",
        fixed: "files of 2 MB, Linux clients",
        x_label: "way",
        y_label: "us a request",
        x: spreads.iter().map(|(way, _)| way.title().to_owned()).collect(),
        series: vec![
            Series::of_spreads("here", spreads.iter().map(|(_, spread)| Some(*spread)).collect())
                .bars(),
        ],
        statements: vec![statement],
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
