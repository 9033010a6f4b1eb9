//! Figures 7 to 9, 11 and 12, and Table 1, in instructions.

use rxo_console::numbers::ratio;

use super::case::Case;
use super::category::Category;
use super::row::{Gain, Row, Rows};
use crate::figure::{Bracket, Figure, Guide, Series};
use crate::menon::receive::fit::Fit;
use crate::menon::receive::paper::{GAIN_AT_400, PER_PACKET_FACTORS, REQUESTS};
use crate::menon::receive::stack::Stack;
use crate::statement::Statement;

/// Every figure that was measured.
pub(super) fn all(rows: Rows<'_>) -> Vec<Figure> {
    let figures = [
        figure_7(rows),
        figure_8(rows),
        figure_9(rows),
        figure_11(rows),
        figure_12(rows),
        table_1(rows),
    ];
    figures.into_iter().flatten().collect()
}

/// What both optimizations gain, for an instruction and for a second.
fn figure_7(rows: Rows<'_>) -> Option<Figure> {
    let places = [
        ("one processor", Case::one_processor(Stack::OPTIMIZED), PAPERS_GAINS[0]),
        ("two processors", Case::two_processors(Stack::OPTIMIZED), PAPERS_GAINS[1]),
    ];
    let measured: Vec<_> = places
        .into_iter()
        .filter_map(|(name, case, paper)| Some((name, case, paper, rows.gain(case)?)))
        .collect();
    if measured.is_empty() {
        return None;
    }
    let alone = |case: Case| rows.gain(Case { stack: Stack::AGGREGATION, ..case });
    let series = |name: &str, colour, of: &dyn Fn(&Measured) -> Option<f64>| {
        Series::new(name, measured.iter().map(of).collect()).bars().colour(colour)
    };
    Some(Figure {
        number: "7 on a card",
        title: "What is received, times Original",
        fixed: "one connection",
        x_label: "receiver",
        y_label: "times Original",
        x: measured.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        series: vec![
            Series::reference(
                "paper, for a second",
                measured.iter().map(|(_, _, paper, _)| Some(1.0 + paper / 100.0)).collect(),
            )
            .bars()
            .colour(1),
            series("+ ACK Offload, for a second", 1, &|(.., gain)| Some(gain.time)),
            series("+ Receive Aggregation, for an instruction", 0, &|(_, case, ..)| {
                Some(alone(*case)?.instructions)
            }),
            series("+ ACK Offload, for an instruction", 2, &|(.., gain)| Some(gain.instructions)),
        ],
        guides: vec![Guide { value: 1.0, meaning: "Original" }],
        ..Figure::default()
    })
}

type Measured = (&'static str, Case, f64, Gain);

/// Where the instructions go, with the application on the worker's thread.
fn figure_8(rows: Rows<'_>) -> Option<Figure> {
    let cases = [
        ("Original, polls of one", Case::SINGLE),
        (ORIGINAL, Case::one_processor(Stack::ORIGINAL)),
        ("+ Receive Aggregation", Case::one_processor(Stack::AGGREGATION)),
        (BOTH, Case::one_processor(Stack::OPTIMIZED)),
    ];
    let claim = "rx, tx, buffer and non-proto together fall by a factor of 4.3";
    Some(Figure {
        number: "8 on a card",
        fixed: "one connection, one processor",
        ..profile(rows, &cases, (claim, PER_PACKET_FACTORS[0]))?
    })
}

/// Where the instructions go, with the application on a thread of its own.
fn figure_9(rows: Rows<'_>) -> Option<Figure> {
    let cases = Stack::ALL.map(Case::two_processors);
    let names = [ORIGINAL, "+ Receive Aggregation", BOTH];
    let cases: Vec<_> = names.into_iter().zip(cases).collect();
    let claim = "on two processors rx, tx, buffer and non-proto together fall by a factor of 5.5";
    Some(Figure {
        number: "9 on a card",
        fixed: "one connection, read on a thread",
        ..profile(rows, &cases, (claim, PER_PACKET_FACTORS[1]))?
    })
}

/// A stack of categories for each host, the per-packet ones at the bottom. The paper's claim is by how much these fall
/// from Original to both optimizations; `None` unless both were measured.
fn profile(
    rows: Rows<'_>,
    cases: &[(&'static str, Case)],
    (claim, factor): (&'static str, f64),
) -> Option<Figure> {
    let measured: Vec<_> =
        cases.iter().filter_map(|&(name, case)| Some((name, rows.of(case)?))).collect();
    let named = |wanted| measured.iter().find(|(name, _)| *name == wanted).map(|(_, row)| *row);
    let (original, optimized) = (named(ORIGINAL)?, named(BOTH)?);
    let part = |category: Category| {
        let of = |(_, row): &(&str, &Row)| Some(row.breakdown[category as usize]);
        Series::new(category.name(), measured.iter().map(of).collect()).stack()
    };
    let brackets = measured.iter().enumerate().map(|(place, (_, row))| Bracket {
        place,
        to: per_packet(row),
        name: "per packet",
    });
    let [before, after] = [original, optimized].map(per_packet);
    let found = ratio(before, after);
    let ours =
        format!("By a factor of {found:.1}: from {before:.0} to {after:.0} instructions a packet.");
    Some(Figure {
        title: "Instructions for a packet, by category",
        x_label: "stack",
        y_label: "instructions per packet",
        x: measured.iter().map(|(name, _)| (*name).to_owned()).collect(),
        series: Category::ALL.into_iter().map(part).collect(),
        brackets: brackets.collect(),
        statements: vec![Statement::new(claim, Some(found >= factor), ours)],
        ..Figure::default()
    })
}

fn per_packet(row: &Row) -> f64 {
    Category::PER_PACKET.iter().map(|&category| row.breakdown[category as usize]).sum()
}

/// Cost over the Aggregation Limit.
fn figure_11(rows: Rows<'_>) -> Option<Figure> {
    let limits = rows.limits();
    if limits.len() < 3 {
        return None;
    }
    let points: Vec<_> =
        limits.iter().map(|(limit, row)| (*limit, row.per_packet.median)).collect();
    let fit = Fit::of(&points)?;
    let original = rows.of(Case::one_processor(Stack::ORIGINAL));
    Some(Figure {
        number: "11 on a card",
        title: "Instructions for a packet, by Aggregation Limit",
        fixed: "one connection, both optimizations",
        x_label: "Aggregation Limit",
        y_label: "instructions per packet",
        x: limits.iter().map(|(limit, _)| limit.to_string()).collect(),
        series: vec![
            Series::of_spreads(
                "here",
                limits.iter().map(|(_, row)| Some(row.per_packet)).collect(),
            ),
            Series::reference(
                "x + y/k, fitted",
                points.iter().map(|(limit, _)| Some(fit.at(*limit))).collect(),
            ),
        ],
        guides: original
            .map(|row| Guide { value: row.per_packet.median, meaning: "Original" })
            .into_iter()
            .collect(),
        ..Figure::default()
    })
}

/// Cost over the number of connections.
fn figure_12(rows: Rows<'_>) -> Option<Figure> {
    let connections = rows.connections();
    if connections.len() < 2 {
        return None;
    }
    let line = |stack: Stack| {
        let of = |&connections: &usize| {
            Some(rows.of(Case { connections, ..Case::one_processor(stack) })?.per_packet)
        };
        Series::of_spreads(stack.name(), connections.iter().map(of).collect())
    };
    Some(Figure {
        number: "12 on a card",
        title: "Instructions for a packet, by connections",
        fixed: "one processor",
        x_label: "connections",
        y_label: "instructions per packet",
        x: connections.iter().map(usize::to_string).collect(),
        series: [Stack::ORIGINAL, Stack::OPTIMIZED].into_iter().map(line).collect(),
        statements: vec![at_many(rows)],
        ..Figure::default()
    })
}

fn at_many(rows: Rows<'_>) -> Statement {
    let claim = "at 400 connections the optimized system is 40 % better than the original";
    let case = Case { connections: MANY, ..Case::one_processor(Stack::OPTIMIZED) };
    let Some(gain) = rows.gain(case).map(|gain| 100.0 * (gain.instructions - 1.0)) else {
        return Statement::new(claim, None, "400 connections were not measured.".into());
    };
    Statement::new(claim, Some(gain >= GAIN_AT_400), format!("{gain:+.0} % for an instruction."))
}

/// Single bytes there and back, in percent of Original.
fn table_1(rows: Rows<'_>) -> Option<Figure> {
    let [before, after] =
        [Stack::ORIGINAL, Stack::OPTIMIZED].map(|stack| rows.of(Case::requests(stack)));
    let (before, after) = (before?, after?);
    let instructions = 100.0 * ratio(before.per_byte.median, after.per_byte.median);
    let paper = REQUESTS.iter().map(|(_, [before, after])| Some(100.0 * after / before));
    let names = REQUESTS.iter().map(|(name, _)| *name);
    let claim =
        "the optimizations \"have no noticeable impact on the latency of packet processing\"";
    let ours = format!(
        "{:.0} instructions an exchange without, {:.0} with both: {:+.1} %.",
        before.per_byte.median,
        after.per_byte.median,
        100.0 * (ratio(after.per_byte.median, before.per_byte.median) - 1.0)
    );
    Some(Figure {
        number: "Table 1 on a card",
        title: "Requests and responses of one byte, with both optimizations",
        fixed: "one connection",
        x_label: "system",
        y_label: "exchanges, percent of Original",
        x: names.chain(["here: for an instruction"]).map(str::to_owned).collect(),
        series: vec![
            Series::reference("paper: for a second", paper.chain([None]).collect())
                .bars()
                .colour(0),
            Series::new(
                "here",
                [None, None, None, Some(instructions)].to_vec(),
            )
            .bars()
            .colour(0),
        ],
        guides: vec![Guide { value: 100.0, meaning: "Original" }],
        statements: vec![Statement::new(claim, Some(instructions >= 98.0), ours).unless_it_holds(|| {
            format!(
                "At one a nanosecond the difference is {:.1} us; an exchange of the paper's takes 127 us.",
                (after.per_byte.median - before.per_byte.median) / 1e3
            )
        })],
        ..Figure::default()
    })
}

const ORIGINAL: &str = "Original";
/// Both optimizations.
const BOTH: &str = "+ ACK Offload";
const MANY: usize = 400;
/// Of one processor and of two, in percent of throughput for the processor's time (figure 7).
const PAPERS_GAINS: [f64; 2] = [45.0, 67.0];

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_run_that_ended_before_both_optimizations_has_no_profile() {
        for place in [Case::one_processor, Case::two_processors] {
            let rows: Vec<_> =
                Stack::ALL.into_iter().map(|stack| row(place(stack), 1_000.0, 500.0)).collect();
            let profiles = |rows: &[Row]| {
                [figure_8(Rows(rows)), figure_9(Rows(rows))].into_iter().flatten().count()
            };
            assert_eq!((profiles(&rows), profiles(&rows[..2])), (1, 0));
        }
    }
}
