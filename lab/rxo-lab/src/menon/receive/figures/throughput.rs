//! Figure 7: the gain in throughput.

use rxo_console::numbers::ratio;

use super::super::category::Category;
use super::super::paper::{SYSTEMS, System};
use super::super::row::Rows;
use super::super::stack::Stack;
use crate::claim::Claim;
use crate::figure::{Figure, Guide, Series};

/// Draws the throughput per second of processor time, as a multiple of the original's.
pub(super) fn figure_7(rows: Rows<'_>) -> Option<Figure> {
    let connections = rows.connections();
    let most = connections.last().copied()?;
    let shown: Vec<usize> = connections.iter().copied().filter(|&n| n <= 5 || n == most).collect();
    let names = shown.iter().map(|connections| format!("here: {connections}"));
    let stacks = [Stack::AGGREGATION, Stack::OPTIMIZED].into_iter().enumerate();
    // A column is either the paper's or ours, so each series has values in some columns only.
    let ours = stacks.clone().map(|(colour, stack)| {
        let gains = shown.iter().map(|&connections| rows.gain(connections, stack));
        let values = SYSTEMS.iter().map(|_| None).chain(gains);
        Series::new(stack.name(), values.collect()).bars().colour(colour)
    });
    let paper = stacks.map(|(colour, stack)| {
        let gain = |system: &System| match stack {
            Stack::AGGREGATION => system.aggregation_gain,
            _ => system.gain,
        };
        let gains = SYSTEMS.iter().map(|system| Some(1.0 + gain(system) / 100.0));
        let values = gains.chain(shown.iter().map(|_| None));
        let name = format!("paper: {}", stack.name());
        Series::reference(name, values.collect()).bars().colour(colour)
    });
    Some(Figure {
        number: "7",
        x: SYSTEMS.iter().map(|system| system.name.to_owned()).chain(names).collect(),
        series: paper.chain(ours).collect(),
        guides: vec![Guide { value: 1.0, meaning: "Original" }],
        claims: vec![gains(rows), as_it_went(rows), aggregation_alone(rows)],
        ..Figure::default()
    })
}

fn gains(rows: Rows<'_>) -> Claim {
    let gain = |connections| rows.gain(connections, Stack::OPTIMIZED).map(percent);
    let five = gain(5).map(|five| format!("{five:+.0} % with five connections."));
    Claim::new("menon.fig7.both.up", gain(1), five).because(|| what_stays(rows))
}

/// Returns a sentence about the cost that neither optimization removes: the device's work on each frame, in
/// and out.
fn what_stays(rows: Rows<'_>) -> String {
    let row = rows.of(1, Stack::OPTIMIZED);
    let Some(breakdown) = row.and_then(|row| row.breakdown_ns) else { return String::new() };
    let [into, out, bytes] = [Category::DriverIn, Category::DriverOut, Category::PerByte]
        .map(|category| breakdown.of(category));
    format!(
        "Of {:.0} ns that a packet costs the optimized host, {into:.0} are taking it from the device, \
         {out:.0} the system calls that send ACKs, and {bytes:.0} the application's: neither \
         optimization takes these away.",
        breakdown.total()
    )
}

/// Compares the throughput in real time, whatever its processor cost.
fn as_it_went(rows: Rows<'_>) -> Claim {
    let of = |stack| rows.of(1, stack).map(|row| row.gbit_per_s.median);
    let both = of(Stack::ORIGINAL).zip(of(Stack::OPTIMIZED));
    let gain = both.map(|(before, after)| percent(ratio(after, before)));
    let detail = both.map(|(before, after)| {
        format!("{:.0} to {:.0} Mbit/s with one connection.", 1e3 * before, 1e3 * after)
    });
    Claim::new("menon.fig7.absolute.up", gain, detail)
}

fn aggregation_alone(rows: Rows<'_>) -> Claim {
    let gain = rows.gain(1, Stack::AGGREGATION).map(percent);
    Claim::new("menon.fig7.ra.up", gain, None)
}

fn percent(times: f64) -> f64 {
    100.0 * (times - 1.0)
}
