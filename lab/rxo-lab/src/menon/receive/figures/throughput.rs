//! Figure 7: the gain in throughput.

use rxo_console::numbers::ratio;

use super::super::category::Category;
use super::super::paper::{SYSTEMS, System};
use super::super::row::Rows;
use super::super::stack::Stack;
use crate::figure::{Figure, Guide, Series};
use crate::statement::Statement;

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
        title: "Throughput for the processor's time, times Original",
        fixed: "the paper's three, and ours by connections",
        x_label: "system",
        y_label: "times Original",
        x: SYSTEMS.iter().map(|system| system.name.to_owned()).chain(names).collect(),
        series: paper.chain(ours).collect(),
        guides: vec![Guide { value: 1.0, meaning: "Original" }],
        statements: vec![gains(rows), as_it_went(rows), aggregation_alone(rows)],
        ..Figure::default()
    })
}

fn gains(rows: Rows<'_>) -> Statement {
    let claim = "both optimizations raise throughput for the processor's time by 45 % (one processor), \
                 67 % (two) and 86 % (Xen)";
    let gain = |connections| rows.gain(connections, Stack::OPTIMIZED);
    let Some(one) = gain(1) else {
        return Statement::new(claim, None, NOT_MEASURED.into());
    };
    let five = gain(5).map(|five| format!(", {:+.0} % with five", percent(five)));
    let ours = format!("{:+.0} % with one connection{}.", percent(one), five.unwrap_or_default());
    Statement::new(claim, Some(percent(one) >= SYSTEMS[0].gain), ours)
        .unless_it_holds(|| what_stays(rows))
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
fn as_it_went(rows: Rows<'_>) -> Statement {
    let claim = "throughput itself rises from 3,452 to 4,660 Mb/s, 2,988 to 4,660 and 1,088 to 1,877; \
                 the first two are then limited by the five links";
    let of = |stack| rows.of(1, stack).map(|row| row.gbit_per_s.median);
    let Some((before, after)) = of(Stack::ORIGINAL).zip(of(Stack::OPTIMIZED)) else {
        return Statement::new(claim, None, NOT_MEASURED.into());
    };
    let [from, to] = SYSTEMS[0].mbit_per_s;
    let ours = format!(
        "{:.0} to {:.0} Mbit/s with one connection, {:+.0} %.",
        1e3 * before,
        1e3 * after,
        percent(ratio(after, before))
    );
    Statement::new(claim, Some(ratio(after, before) >= to / from), ours).unless_it_holds(|| {
        "Sender and receiver have a core each: where the receiver keeps up, the rate is the \
         sender's, and what is gained is processor time."
            .into()
    })
}

fn aggregation_alone(rows: Rows<'_>) -> Statement {
    let claim = "Receive Aggregation alone gains 26 %, 36 % and 45 %";
    let Some(gain) = rows.gain(1, Stack::AGGREGATION) else {
        return Statement::new(claim, None, NOT_MEASURED.into());
    };
    let ours = format!("{:+.0} % with one connection.", percent(gain));
    Statement::new(claim, Some(percent(gain) >= SYSTEMS[0].aggregation_gain), ours)
}

fn percent(times: f64) -> f64 {
    100.0 * (times - 1.0)
}

const NOT_MEASURED: &str = "One connection was not measured with both stacks.";
