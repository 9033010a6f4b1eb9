//! What was found: text for people, JSON for machines, drawings for both.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;
use serde::Serialize;

use super::case::Case;
use super::category::Category;
use super::plan::Plan;
use super::row::{Row, Rows};
use crate::experiment::Findings;
use crate::figure::{Figure, Guide, Series, Shape};
use crate::load::Timed;
use crate::menon::receive::fit::Fit;
use crate::menon::receive::stack::Stack;
use crate::menon::verdict::Verdict;

/// The paper's measurements, repeated on a card.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    rows: Vec<Row>,
    figures: Vec<Figure>,
    aims: Vec<Verdict>,
}

impl Found {
    pub(super) fn new(rows: Vec<Row>) -> Self {
        let all = Rows(&rows);
        let figures = [figure_7(all), figure_8(all), figure_11(all), figure_12(all)];
        let figures = figures.into_iter().flatten().collect();
        let aims = aims(all);
        Self { rows, figures, aims }
    }

    fn table(&self) -> String {
        let mut table = Table::new(&[
            "connections",
            "read on",
            "stack",
            "polls",
            "instr/packet",
            "instr/byte",
            "Gbit/CPU s",
            "Gbit/s",
            "packets/delivery",
            "ACKs/packet",
            "handed over/packet",
            "pauses/packet",
            "sent again",
        ]);
        for row in &self.rows {
            table.row([
                row.case.connections.to_string(),
                row.case.application.name().to_owned(),
                row.case.stack.name(),
                row.case.poll_frames.to_string(),
                row.per_packet.ranged(0),
                format!("{:.3}", row.per_byte.median),
                row.scaled_gbit_per_s.ranged(2),
                format!("{:.2}", row.gbit_per_s.median),
                format!("{:.1}", row.packets_per_delivery.median),
                format!("{:.3}", row.acks_per_packet.median),
                format!("{:.3}", row.handed_over_per_packet.median),
                format!("{:.4}", row.pauses_per_packet.median),
                grouped(row.retransmissions),
            ]);
        }
        table.render()
    }
}

impl Findings for Found {
    fn paragraphs(&self) -> Vec<String> {
        let mut parts = vec![format!("Bulk receive behind a card\n\n{}", self.table())];
        parts.extend(self.figures.iter().map(Figure::text));
        parts.push("What rxo wants of its host on a card".to_owned());
        parts.extend(self.aims.iter().map(Verdict::text));
        parts
    }

    /// Instructions are counted, whatever else the machine does; only times say nothing then.
    fn withhold(&mut self) {
        self.aims.iter_mut().filter(|aim| aim.claim.contains(OF_TIME)).for_each(Verdict::withhold);
    }

    fn timed(&self) -> Timed {
        Timed::Only("processor time")
    }

    fn drawings(&self) -> Vec<(String, String)> {
        self.figures.iter().map(|figure| (figure.file_name(), figure.svg())).collect()
    }
}

/// How it was done.
pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let s = if plan.rounds == 1 { "" } else { "s" };
    vec![
        format!(
            "Medians of {} round{s}, least and most in brackets. Linux senders, CUBIC, MTU 1500, and the card on \
             one core; rxo's host on virtio: in a process of its own on another. Each transfer is made twice: \
             {} MB for processor time, {} MB under callgrind for instructions. The middle half of each counts.",
            plan.rounds,
            plan.timed_bytes / 1_000_000,
            plan.counted_bytes / 1_000_000
        ),
        "Instructions are those of the receiving process alone: the copy out of the ring, the engine, TCP, ACKs, and \
         the copy to the application. Callgrind counts exactly; what varies between rounds is how many frames \
         a poll found. Turns that found nothing are counted too; pauses/packet says how many there were."
            .to_owned(),
        "The card segments, completes and validates checksums, moderates notifications by 50 us, and expands ACK \
         templates; its cost is in no account, as the paper books expansion under the driver. A worker that \
         finds nothing pauses, for 50 us and under callgrind for 4 ms."
            .to_owned(),
        "Categories are by the source file that an instruction was compiled from, inlined code included: protocol \
         is rxo-tcp (the paper's rx and tx), transmit writes headers and templates, non-proto is the rest of \
         the host, driver the rings, aggr the engine, per-byte the copies."
            .to_owned(),
    ]
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

type Measured = (&'static str, Case, f64, super::row::Gain);

/// Where the instructions go.
fn figure_8(rows: Rows<'_>) -> Option<Figure> {
    let cases = [
        ("Original, polls of one", Case::SINGLE),
        ("Original", Case::one_processor(Stack::ORIGINAL)),
        ("+ Receive Aggregation", Case::one_processor(Stack::AGGREGATION)),
        ("+ ACK Offload", Case::one_processor(Stack::OPTIMIZED)),
    ];
    let measured: Vec<_> =
        cases.into_iter().filter_map(|(name, case)| Some((name, rows.of(case)?))).collect();
    if measured.len() < 2 {
        return None;
    }
    let part = |category: Category| {
        let of = |(_, row): &(&str, &Row)| Some(row.breakdown[category as usize]);
        let series = Series::new(category.name(), measured.iter().map(of).collect());
        Series { shape: Shape::Stack, ..series }
    };
    Some(Figure {
        number: "8 on a card",
        title: "Instructions for a packet, by category",
        fixed: "one connection, one processor",
        x_label: "stack",
        y_label: "instructions per packet",
        x: measured.iter().map(|(name, _)| (*name).to_owned()).collect(),
        series: Category::ALL.into_iter().map(part).collect(),
        ..Figure::default()
    })
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
        ..Figure::default()
    })
}

/// What the project wants on a card.
fn aims(rows: Rows<'_>) -> Vec<Verdict> {
    let one = Case::one_processor(Stack::OPTIMIZED);
    let gain = rows.gain(one);
    let mut aims = vec![
        aim(
            "with one processor both optimizations receive at least 100 % more for an instruction",
            gain.map(|gain| gain.instructions),
            2.0,
        ),
        aim(
            "with one processor both optimizations receive at least 45 % more for a second of processor time",
            gain.map(|gain| gain.time),
            1.45,
        ),
    ];
    let over_single = rows.gain_over(one, Case::SINGLE);
    aims.extend(over_single.map(|gain| {
        let found = format!(
            "{:+.0} % for an instruction, {:+.0} % for a second.",
            percent(gain.instructions),
            percent(gain.time)
        );
        let claim = "over Original with polls of one frame, as a kernel of 2006 took them, both gain at least \
                     100 % for an instruction";
        Verdict::new(claim, Some(gain.instructions >= 2.0), found)
    }));
    let formula = rows.limits();
    let points: Vec<_> =
        formula.iter().map(|(limit, row)| (*limit, row.per_packet.median)).collect();
    aims.extend(Fit::of(&points).map(|fit| {
        let found = format!(
            "x = {:.0}, y = {:.0} instructions per packet; the curve explains {:.0} % of the spread.",
            fit.x,
            fit.y,
            100.0 * fit.r_squared
        );
        let claim = "the cost of a packet follows x + y/k over the Aggregation Limit k (figure 11)";
        Verdict::new(claim, Some(fit.r_squared >= 0.9), found)
    }));
    aims
}

fn aim(claim: &str, times: Option<f64>, least: f64) -> Verdict {
    let found = times
        .map_or("Not both were measured.".to_owned(), |times| format!("{:+.0} %.", percent(times)));
    Verdict::new(claim, times.map(|times| times >= least), found)
}

fn percent(times: f64) -> f64 {
    100.0 * (times - 1.0)
}

/// In each claim about time.
const OF_TIME: &str = "second of processor time";
/// Of one processor and of two, in percent of throughput for the processor's time (figure 7).
const PAPERS_GAINS: [f64; 2] = [45.0, 67.0];

#[cfg(test)]
mod tests {
    use super::super::case::Application;
    use super::super::row::tests::row;
    use super::*;

    fn found(optimized: (f64, f64)) -> Found {
        let limits = [1, 2, 5, 35].map(|limit| {
            let cost = 300.0 + 700.0 / f64::from(limit);
            row(Case::one_processor(Stack::limited(limit)), cost, cost)
        });
        let (instructions, ns) = optimized;
        let mut rows = vec![
            row(Case::SINGLE, 1_500.0, 700.0),
            row(Case::one_processor(Stack::ORIGINAL), 1_000.0, 500.0),
            row(Case::one_processor(Stack::OPTIMIZED), instructions, ns),
        ];
        rows.extend(limits);
        Found::new(rows)
    }

    fn holds(found: &Found) -> Vec<Option<bool>> {
        found.aims.iter().map(|aim| aim.holds).collect()
    }

    #[test]
    fn aims_are_met_or_not_by_the_rows_alone() {
        assert_eq!(holds(&found((335.0, 300.0))), [Some(true); 4]);
        let missed = holds(&found((800.0, 400.0)));
        assert_eq!(missed[..3], [Some(false), Some(false), Some(false)]);
    }

    #[test]
    fn a_busy_machine_takes_back_what_was_timed_and_nothing_counted() {
        let mut found = found((335.0, 300.0));
        found.withhold();
        assert_eq!(holds(&found), [Some(true), None, Some(true), Some(true)]);
    }

    #[test]
    fn every_figure_is_drawn_and_named() {
        let names: Vec<_> =
            found((335.0, 300.0)).drawings().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["figure-7-on-a-card.svg", "figure-8-on-a-card.svg", "figure-11-on-a-card.svg"]
        );
    }

    #[test]
    fn the_place_of_the_application_is_in_the_table() {
        let rows = vec![row(Case::two_processors(Stack::ORIGINAL), 1_000.0, 500.0)];
        let text = Found::new(rows).paragraphs().join("\n");
        assert!(text.contains(Application::Threads.name()) && text.contains("Original"), "{text}");
    }
}
