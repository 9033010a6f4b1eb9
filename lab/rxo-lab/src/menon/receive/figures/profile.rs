//! Figures 3 and 8 to 10: processor time by category.

use rxo_console::numbers::ratio;

use super::super::category::{Breakdown, Category};
use super::super::paper::{AGGREGATION_CYCLES, PER_PACKET_FACTORS, SHARES, SYSTEMS};
use super::super::row::{Row, Rows};
use super::super::stack::Stack;
use super::super::units::Units;
use crate::figure::{Bracket, Figure, Series};
use crate::statement::Statement;

/// Draws the shares of each category, for the original stack with one connection.
pub(super) fn figure_3(rows: Rows<'_>) -> Option<Figure> {
    let breakdown = rows.of(1, Stack::ORIGINAL)?.breakdown_ns?;
    let shares = GROUPS.map(|(_, categories)| Some(100.0 * breakdown.share(categories)));
    let paper = SHARES.map(Some).into_iter().chain([Some(100.0 - SHARES.iter().sum::<f64>())]);
    Some(Figure {
        number: "3",
        title: "What receiving costs without aggregation",
        fixed: "one connection, Original",
        x_label: "category",
        y_label: "percent of the host's processor time",
        x: GROUPS.map(|(name, _)| name.to_owned()).to_vec(),
        series: vec![
            Series::new("here", shares.to_vec()).bars().colour(0),
            Series::reference("paper: Linux UP", paper.collect()).bars().colour(0),
        ],
        statements: vec![packets_before_bytes(&breakdown)],
        ..Figure::default()
    })
}

/// The paper's groups of categories in section 2.2.
const GROUPS: [(&str, &[Category]); 5] = [
    ("rx, tx", &[Category::Rx, Category::Tx]),
    ("buffer, non-proto", &[Category::Buffer, Category::NonProto]),
    ("driver", &[Category::DriverIn, Category::DriverOut]),
    ("per-byte", &[Category::PerByte]),
    // Without aggregation the engine only parses each frame, so its time counts as misc.
    ("misc", &[Category::Misc, Category::Aggr]),
];

fn packets_before_bytes(breakdown: &Breakdown) -> Statement {
    let claim = "even without the driver, the per-packet routines (rx, tx, buffer, non-proto) take \
                 46 %, much more than copying, 17 %";
    let [packets, bytes] = [&Category::PER_PACKET[..], &[Category::PerByte]]
        .map(|categories| 100.0 * breakdown.share(categories));
    let times = ratio(packets, bytes);
    let ours = format!(
        "{packets:.0} % for these routines, {bytes:.0} % for the application, which waits and \
         copies: {times:.1} times as much."
    );
    Statement::new(claim, Some(times >= MUCH_MORE), ours).unless_it_holds(|| {
        "There is no kernel with its buffer metadata here: a packet costs the stack less, and an \
         application in a thread of its own is woken."
            .into()
    })
}

/// Factor from which a cost counts as "much more". The paper's ratio is 2.7.
const MUCH_MORE: f64 = 2.0;

/// Draws the cost of a packet with one connection.
pub(super) fn figure_8(rows: Rows<'_>, units: Units) -> Option<Figure> {
    let claim = "rx, tx, buffer and non-proto together fall by a factor of 4.3";
    let mut figure = profile(units, |stack| rows.of(1, stack), (claim, PER_PACKET_FACTORS[0]))?;
    figure.statements.push(aggregation_itself(rows, units));
    Some(Figure {
        number: "8",
        title: "What a packet costs, one connection",
        fixed: "one core, medians",
        ..figure
    })
}

/// Draws the cost of a packet with five connections and a thread for each. The threads share the stack, as
/// the paper's processors do.
pub(super) fn figure_9(rows: Rows<'_>, units: Units) -> Option<Figure> {
    let claim = "on two processors rx, tx, buffer and non-proto together fall by a factor of 5.5";
    Some(Figure {
        number: "9",
        title: "What a packet costs, five connections and threads",
        fixed: "one core, medians",
        ..profile(units, |stack| rows.of(5, stack), (claim, PER_PACKET_FACTORS[1]))?
    })
}

/// Draws the cost of a packet in a guest. The driver domain's work, which the paper includes, runs on the
/// sender's core here.
pub(super) fn figure_10(rows: Rows<'_>, units: Units) -> Option<Figure> {
    let claim = "with Xen the per-packet routines of guest and driver domain together fall by a factor \
                 of 3.7";
    let mut figure = profile(units, |stack| rows.guest(stack), (claim, PER_PACKET_FACTORS[2]))?;
    figure.statements.push(guest_gain(rows));
    Some(Figure {
        number: "10",
        title: "What a packet costs a guest, one connection",
        fixed: "behind a bridge and a TAP, medians",
        ..figure
    })
}

fn guest_gain(rows: Rows<'_>) -> Statement {
    let xen = &SYSTEMS[2];
    let claim =
        "in a Xen guest both optimizations raise throughput for the processor's time by 86 %";
    let Some(gain) = rows.guest_gain(Stack::OPTIMIZED).map(|times| 100.0 * (times - 1.0)) else {
        return Statement::new(claim, None, "Not both stacks were measured.".into());
    };
    let ours = format!("{gain:+.0} %, of the guest's own time.");
    Statement::new(claim, Some(gain >= xen.gain), ours).unless_it_holds(|| {
        "The paper aggregates before its driver domain, which then carries less; here the host \
         aggregates behind it, after each frame was read from the TAP by itself."
            .into()
    })
}

/// Draws a stack of categories for each host, the per-packet routines at the bottom. The paper's claim is the
/// factor by which these fall.
fn profile<'r>(
    units: Units,
    row: impl Fn(Stack) -> Option<&'r Row>,
    claim: (&'static str, f64),
) -> Option<Figure> {
    let of = |stack| row(stack)?.breakdown_ns;
    let shown = Stack::ALL.into_iter().filter_map(|stack| Some((stack, of(stack)?)));
    let shown: Vec<(Stack, Breakdown)> = shown.collect();
    let parts = |category: Category| {
        let values = shown.iter().map(|(_, breakdown)| units.of_ns(breakdown.of(category)));
        Series::new(category.name(), values.map(Some).collect()).stack()
    };
    // Categories without any cost are left out of the figure.
    let costs = |category: &Category| shown.iter().any(|(_, costs)| costs.of(*category) > 0.0);
    let series = Category::ALL.into_iter().filter(costs).map(parts).collect();
    let brackets = shown.iter().enumerate().map(|(place, (_, breakdown))| {
        let to = units.of_ns(breakdown.sum(&Category::PER_PACKET));
        Bracket { place, to, name: "per packet" }
    });
    let (before, after) = (of(Stack::ORIGINAL)?, of(Stack::OPTIMIZED)?);
    Some(Figure {
        number: "",
        title: "",
        fixed: "",
        x_label: "stack",
        y_label: units.label(),
        x: shown.iter().map(|(stack, _)| stack.name()).collect(),
        series,
        brackets: brackets.collect(),
        statements: vec![per_packet(claim, &before, &after)],
        ..Figure::default()
    })
}

fn per_packet(
    (claim, factor): (&'static str, f64),
    before: &Breakdown,
    after: &Breakdown,
) -> Statement {
    let [from, to] = [before, after].map(|breakdown| breakdown.sum(&Category::PER_PACKET));
    let found = ratio(from, to);
    let ours = format!("By a factor of {found:.1}: from {from:.0} to {to:.0} ns for a packet.");
    Statement::new(claim, Some(found >= factor), ours)
}

fn aggregation_itself(rows: Rows<'_>, units: Units) -> Statement {
    let claim = "aggregation itself costs 789 cycles for a packet, most of it one cache miss";
    let breakdown = rows.of(1, Stack::OPTIMIZED).and_then(|row| row.breakdown_ns);
    let ns = breakdown.map(|breakdown| breakdown.of(Category::Aggr));
    let Some((ns, cycles)) = ns.and_then(|ns| Some((ns, units.cycles(ns)?))) else {
        return Statement::new(claim, None, "It was not measured in cycles.".into());
    };
    let ours = format!("{cycles:.0} cycles ({ns:.0} ns); less is better.");
    Statement::new(claim, Some(cycles <= AGGREGATION_CYCLES), ours)
}
