//! The paper's tables and figures, and the claims that they decide.

use rxo_console::numbers::ratio;
use rxo_testbed::median_bounds;

use super::case::{AckRate, Case, MIX, PROFILED_BYTES, Row, TABLE_1, Way, size};
use super::cost::{COMPONENTS, Cost, DRIVER_RX, NETWORK_RX};
use super::live::Window;
use crate::claim::{Claim, Ours};
use crate::counted::MEMORY;
use crate::figure::{Figure, Series, Shape};
use crate::scenario::{Cells, Chart};

type Costs = Cells<Case, Cost>;

/// Returns the figures of counted instructions.
pub(super) fn of_requests(costs: &Costs) -> Vec<Figure> {
    let rates = AckRate::ALL.map(|acks| requests(costs, acks));
    let others = [savings(costs), shares(costs), profile(costs, "4", &FIGURE_4), acks(costs)];
    rates.into_iter().chain(others).flatten().collect()
}

/// Returns the figure of estimated cycles.
pub(super) fn of_cycles(costs: &Costs) -> Vec<Figure> {
    let figure = profile(costs, "3", &FIGURE_3);
    let both = at(costs, Way::Stack).zip(at(costs, Way::FastPath));
    let saved = both.map(|(stack, fast)| at_papers_mix(stack, fast));
    let with_table_1 = |mut figure: Figure| {
        figure.claims.push(Claim::new("paro.table1.cycles", saved, None));
        figure
    };
    figure.map(with_table_1).into_iter().collect()
}

/// Returns the reduction from `before` to `now`, in percent.
fn saved_percent(before: f64, now: f64) -> f64 {
    100.0 * (1.0 - ratio(now, before))
}

fn find(costs: &Costs, way: Way, file_bytes: u64, acks: AckRate) -> Option<&Cost> {
    costs.get(Case { way, file_bytes, acks })
}

/// Returns the cost with files of the size of figures 3 and 4.
fn at(costs: &Costs, way: Way) -> Option<&Cost> {
    find(costs, way, PROFILED_BYTES, AckRate::Second)
}

/// Returns what `way` saves of a request without the fast path, in percent.
fn saved(costs: &Costs, way: Way, file_bytes: u64, acks: AckRate) -> Option<f64> {
    let of = |way| find(costs, way, file_bytes, acks);
    Some(saved_percent(of(Way::Stack)?.total(), of(way)?.total()))
}

/// Returns the rows of Table 1 that were counted with `acks`.
fn rows(costs: &Costs, acks: AckRate) -> Vec<Row> {
    let is_counted = |row: &Row| find(costs, Way::Stack, row.file_bytes, acks).is_some();
    TABLE_1.into_iter().filter(is_counted).collect()
}

/// Makes a series over the rows of Table 1.
fn over(rows: &[Row], name: impl Into<String>, of: impl Fn(&Row) -> Option<f64>) -> Series {
    Series::new(name, rows.iter().map(of).collect())
}

fn sizes(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| size(row.file_bytes)).collect()
}

/// Table 1: draws the cost of a request over the file size.
fn requests(costs: &Costs, acks: AckRate) -> Option<Figure> {
    let rows = rows(costs, acks);
    rows.last()?;
    let line = |way: Way| {
        let of = |row: &Row| Some(find(costs, way, row.file_bytes, acks)?.total() / 1e6);
        over(&rows, way.title(), of).bars().colour(way as usize)
    };
    let figure = Figure {
        number: "Table 1 merged",
        x: sizes(&rows),
        series: Way::ALL.into_iter().map(line).collect(),
        ..Figure::default()
    };
    if acks == AckRate::Merged {
        return Some(figure);
    }
    let columns = [("without", 0, Way::Stack), ("with", 1, Way::FastPath)];
    let paper = columns.map(|(name, column, way)| {
        let line =
            over(&rows, format!("paper, {name}, million cycles"), |row| Some(row.paper[column]));
        Series { is_reference: true, ..line.bars().colour(way as usize) }
    });
    let claims = TABLE_1.iter().map(|row| {
        let of = |way| find(costs, way, row.file_bytes, acks);
        let both = of(Way::Stack).zip(of(Way::FastPath));
        let detail = saved(costs, Way::FastPath, row.file_bytes, acks)
            .map(|saved| format!("Of a request here it is {saved:.1} %."));
        Claim::new(row.claim, both.map(|(stack, fast)| at_papers_mix(stack, fast)), detail)
    });
    let best = saved(costs, Way::Batches, PROFILED_BYTES, acks);
    let best = Claim::new("paro.table1.best", best, None);
    let claims = claims.chain([best, grows(costs, &rows)]).collect();
    let series = figure.series.into_iter().chain(paper).collect();
    Some(Figure { number: "Table 1", series, claims, ..figure })
}

/// Returns the saving of a request whose parts have the paper's shares, in percent: what receiving and memory
/// save here, weighted by [`MIX`].
fn at_papers_mix(stack: &Cost, fast: &Cost) -> f64 {
    let parts: [fn(&Cost) -> f64; 2] = [receiving, |cost| cost.components.of(MEMORY)];
    let saved = parts.map(|part| saved_percent(part(stack), part(fast)));
    MIX.iter().zip(saved).map(|(share, saved)| share * saved / 100.0).sum()
}

fn receiving(cost: &Cost) -> f64 {
    cost.components.of(DRIVER_RX) + cost.components.of(NETWORK_RX)
}

/// Makes the claim that larger files save more: the growth from the first size to the last, and the least step.
fn grows(costs: &Costs, rows: &[Row]) -> Claim {
    let saved = |row: &Row| saved(costs, Way::FastPath, row.file_bytes, AckRate::Second);
    let all: Vec<f64> = rows.iter().filter_map(saved).collect();
    let least = all.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min);
    let ours = least.zip(all.first().zip(all.last())).map(|(least, (first, last))| {
        let grown = last - first;
        Ours::between(grown, (least, grown), all.len())
    });
    Claim::new("paro.table1.grows", ours, None)
}

/// Draws the saving over the file size: the last column of Table 1.
fn savings(costs: &Costs) -> Option<Figure> {
    let rows = rows(costs, AckRate::Second);
    if rows.len() < 2 {
        return None;
    }
    let line = |name: String, way, acks| {
        over(&rows, name, move |row: &Row| saved(costs, way, row.file_bytes, acks))
    };
    let ways = [Way::FastPath, Way::Records, Way::Batches];
    let mut series: Vec<_> = ways
        .map(|way| line(way.title().to_owned(), way, AckRate::Second).colour(way as usize))
        .to_vec();
    if !self::rows(costs, AckRate::Merged).is_empty() {
        let name = format!("{}, merged ACKs", Way::Batches.title());
        series.push(line(name, Way::Batches, AckRate::Merged).colour(5));
    }
    let paper = over(&rows, "paper, of cycles", |row| Some(row.paper[2]));
    series.push(Series { is_reference: true, ..paper.colour(Way::FastPath as usize) });
    Some(Figure { number: "saved", x: sizes(&rows), series, ..Figure::default() })
}

/// Figure 1: draws the shares of a request's instructions by component.
fn shares(costs: &Costs) -> Option<Figure> {
    let rows = rows(costs, AckRate::Second);
    let of = |row: &Row| find(costs, Way::Stack, row.file_bytes, AckRate::Second);
    let share = |cost: &Cost, component| 100.0 * ratio(cost.components.of(component), cost.total());
    let part = |component| over(&rows, component, |row| Some(share(of(row)?, component))).stack();
    let largest = of(rows.last()?)?;
    let pure_acks = rows.iter().filter_map(of).map(|cost| cost.pure_acks_percent);
    let claims = [
        ("paro.fig1.rx", Some(share(largest, NETWORK_RX))),
        ("paro.fig1.memory", Some(share(largest, MEMORY))),
        ("paro.fig1.pure-acks", pure_acks.reduce(f64::min)),
    ];
    Some(Figure {
        number: "1",
        x: sizes(&rows),
        series: COMPONENTS.into_iter().map(part).collect(),
        claims: claims.map(|(id, ours)| Claim::new(id, ours, None)).to_vec(),
        ..Figure::default()
    })
}

/// Draws `components` of the ways, in the unit that `value` gives.
fn stacks(
    costs: &Costs,
    components: &[&'static str],
    value: fn(&Cost, &'static str) -> f64,
) -> Figure {
    let ways = || Way::ALL.into_iter().filter_map(move |way| Some((way, at(costs, way)?)));
    let part = |component: &&'static str| {
        let values = ways().map(|(_, cost)| Some(value(cost, component))).collect();
        Series::new(*component, values).stack()
    };
    Figure {
        x: ways().map(|(way, _)| way.title().to_owned()).collect(),
        series: components.iter().map(part).collect(),
        ..Figure::default()
    }
}

/// Figures 3 and 4: draws the components of the four ways. `claims` are about the savings of components.
fn profile(
    costs: &Costs,
    number: &'static str,
    claims: &[(&'static str, &'static str)],
) -> Option<Figure> {
    let (stack, fast) = (at(costs, Way::Stack)?, at(costs, Way::FastPath)?);
    let claim = |(component, id): &(&str, &str)| {
        let of = |cost: &Cost| cost.components.of(component);
        let saved = |cost| saved_percent(of(stack), of(cost));
        let batches = at(costs, Way::Batches);
        let detail = batches.map(|cost| format!("In batches by {:.1} %.", saved(cost)));
        Claim::new(id, Some(saved(fast)), detail)
    };
    let claims = claims.iter().map(claim).collect();
    let thousands = |cost: &Cost, component: &'static str| cost.components.of(component) / 1e3;
    Some(Figure { number, claims, ..stacks(costs, &COMPONENTS, thousands) })
}

const FIGURE_3: [(&str, &str); 3] = [
    (DRIVER_RX, "paro.fig3.driver-rx"),
    (NETWORK_RX, "paro.fig3.network-rx"),
    (MEMORY, "paro.fig3.memory"),
];
const FIGURE_4: [(&str, &str); 2] =
    [(NETWORK_RX, "paro.fig4.network-rx"), (MEMORY, "paro.fig4.memory")];

/// Draws the cost of an ACK in the receiving part of the host, without memory.
fn acks(costs: &Costs) -> Option<Figure> {
    at(costs, Way::Batches)?;
    let an_ack = |way| at(costs, way).map(|cost| ratio(receiving(cost), cost.acks_a_request));
    let (stack, fast) = (an_ack(Way::Stack)?, an_ack(Way::FastPath)?);
    let detail = format!("{stack:.0} without, {fast:.0} with the fast path.");
    let claim = Claim::new("paro.ack", Some(saved_percent(stack, fast)), detail);
    let value = |cost: &Cost, component: &'static str| {
        ratio(cost.components.of(component), cost.acks_a_request)
    };
    let figure = stacks(costs, &[DRIVER_RX, NETWORK_RX], value);
    Some(Figure { number: "ack", claims: vec![claim], ..figure })
}

/// Draws the live server's processor time.
pub(super) fn of_windows(windows: &Cells<Way, Window>) -> Option<Figure> {
    let of = |way| windows.median(way, |one| one.us_a_request);
    let (stack, batches) = (of(Way::Stack)?, of(Way::Batches)?);
    let ratios = ratios(windows);
    // Too few rounds decide nothing.
    let bounds = median_bounds(&ratios).unwrap_or((0.0, f64::MAX));
    let ours = Ours::between(ratio(batches, stack), bounds, ratios.len());
    let detail = format!(
        "{stack:.0} us without, {batches:.0} with the fast path in batches. The interval is that of both in the \
         same round, at 95 %."
    );
    let claims = vec![Claim::new("paro.live", Some(ours), detail)];
    Some(Figure { claims, ..LIVE.figure(windows)? })
}

/// Returns the ratio of batches to stack in each round, whose windows are a few seconds apart.
fn ratios(windows: &Cells<Way, Window>) -> Vec<f64> {
    let of = |way| windows.samples().filter(move |(one, _)| *one == way).map(|(_, one)| one);
    let pairs = of(Way::Batches).zip(of(Way::Stack));
    pairs.map(|(batches, stack)| batches.us_a_request / stack.us_a_request).collect()
}

const LIVE: Chart<Way, Window> = Chart {
    number: "live",
    x: |way| way.title().to_owned(),
    line: |_| "here",
    value: |window| window.us_a_request,
    paper: |_| None,
    shape: Shape::Bars,
};

#[cfg(test)]
mod tests;
