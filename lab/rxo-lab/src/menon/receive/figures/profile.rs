//! Figures 3 and 8 to 10: processor time by category.

use rxo_console::numbers::ratio;

use super::super::category::{Breakdown, Category};
use super::super::paper::SHARES;
use super::super::row::{Row, Rows};
use super::super::stack::Stack;
use super::super::units::Units;
use crate::claim::Claim;
use crate::figure::{Bracket, Figure, Series};

/// Draws the shares of each category, for the original stack with one connection.
pub(super) fn figure_3(rows: Rows<'_>) -> Option<Figure> {
    let breakdown = rows.of(1, Stack::ORIGINAL)?.breakdown_ns?;
    let shares = GROUPS.map(|(_, categories)| Some(100.0 * breakdown.share(categories)));
    let paper = SHARES.map(Some).into_iter().chain([Some(100.0 - SHARES.iter().sum::<f64>())]);
    Some(Figure {
        number: "3",
        x: GROUPS.map(|(name, _)| name.to_owned()).to_vec(),
        series: vec![
            Series::new("here", shares.to_vec()).bars().colour(0),
            Series::reference("paper: Linux UP", paper.collect()).bars().colour(0),
        ],
        claims: vec![packets_before_bytes(&breakdown)],
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

fn packets_before_bytes(breakdown: &Breakdown) -> Claim {
    let [packets, bytes] = [&Category::PER_PACKET[..], &[Category::PerByte]]
        .map(|categories| 100.0 * breakdown.share(categories));
    let detail = format!(
        "{packets:.0} % for these routines, {bytes:.0} % for the application, which waits and copies."
    );
    Claim::new("menon.fig3.per-packet", Some(ratio(packets, bytes)), detail)
}

/// Draws the cost of a packet with one connection.
pub(super) fn figure_8(rows: Rows<'_>, units: Units) -> Option<Figure> {
    let mut figure = profile(units, |stack| rows.of(1, stack), "menon.fig8.per-packet")?;
    figure.claims.push(aggregation_itself(rows, units));
    Some(Figure { number: "8", ..figure })
}

/// Draws the cost of a packet with five connections and a thread for each. The threads share the stack, as
/// the paper's processors do.
pub(super) fn figure_9(rows: Rows<'_>, units: Units) -> Option<Figure> {
    Some(Figure {
        number: "9",
        ..profile(units, |stack| rows.of(5, stack), "menon.fig9.per-packet")?
    })
}

/// Draws the cost of a packet in a guest. The driver domain's work, which the paper includes, runs on the
/// sender's core here.
pub(super) fn figure_10(rows: Rows<'_>, units: Units) -> Option<Figure> {
    let mut figure = profile(units, |stack| rows.guest(stack), "menon.fig10.per-packet")?;
    figure.claims.push(guest_gain(rows));
    Some(Figure { number: "10", ..figure })
}

fn guest_gain(rows: Rows<'_>) -> Claim {
    let gain = rows.guest_gain(Stack::OPTIMIZED).map(|times| 100.0 * (times - 1.0));
    Claim::new("menon.fig10.gain", gain, "Of the guest's own time.".to_owned())
}

/// Draws a stack of categories for each host, the per-packet routines at the bottom. The claim `id` is about
/// the factor by which these fall.
fn profile<'r>(units: Units, row: impl Fn(Stack) -> Option<&'r Row>, id: &str) -> Option<Figure> {
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
        y_label: units.label(),
        x: shown.iter().map(|(stack, _)| stack.name()).collect(),
        series,
        brackets: brackets.collect(),
        claims: vec![per_packet(id, &before, &after)],
        ..Figure::default()
    })
}

fn per_packet(id: &str, before: &Breakdown, after: &Breakdown) -> Claim {
    let [from, to] = [before, after].map(|breakdown| breakdown.sum(&Category::PER_PACKET));
    Claim::new(id, Some(ratio(from, to)), format!("From {from:.0} to {to:.0} ns a packet."))
}

fn aggregation_itself(rows: Rows<'_>, units: Units) -> Claim {
    let breakdown = rows.of(1, Stack::OPTIMIZED).and_then(|row| row.breakdown_ns);
    let ns = breakdown.map(|breakdown| breakdown.of(Category::Aggr));
    let cycles = ns.and_then(|ns| units.cycles(ns));
    Claim::new("menon.fig8.aggr", cycles, ns.map(|ns| format!("{ns:.0} ns.")))
}
