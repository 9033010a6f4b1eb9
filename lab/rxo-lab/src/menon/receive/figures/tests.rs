//! Tests of the figures and verdicts that follow from given rows.

use super::super::category::{Breakdown, Category};
use super::super::row::tests::{bulk, row};
use super::super::row::{ExchangeRow, Row, Rows};
use super::super::sample::Exchange;
use super::super::stack::{Case, Stack};
use super::*;

fn exchange(stack: Stack, per_s: f64) -> ExchangeRow {
    ExchangeRow::of(stack, &[Exchange { per_s, p50_us: 1e6 / per_s }]).unwrap()
}

/// Makes a row with a cost of `total` per packet, of which the per-packet routines take `per_packet`.
fn profiled(connections: usize, stack: Stack, total: f64, per_packet: f64) -> Row {
    let breakdown = Breakdown::new(|category| match category {
        Category::Rx | Category::Tx | Category::Buffer | Category::NonProto => per_packet / 4.0,
        Category::PerByte => 80.0,
        Category::Aggr => 20.0,
        _ => (total - per_packet - 100.0) / 3.0,
    });
    Row::of(Case::wire(connections, stack), &[bulk(total, Some(breakdown))]).unwrap()
}

/// Makes rows with the paper's gains, or with a cost of `optimized_ns` per packet in the optimized stack.
fn rows(optimized_ns: f64) -> Vec<Row> {
    let mut rows = Vec::new();
    for connections in [1, 5, 400] {
        rows.push(profiled(connections, Stack::ORIGINAL, 1_000.0, 550.0));
        rows.push(row(connections, Stack::AGGREGATION, optimized_ns.midpoint(700.0)));
        rows.push(profiled(connections, Stack::OPTIMIZED, optimized_ns, 100.0));
    }
    for (stack, cost) in [(Stack::ORIGINAL, 1_000.0), (Stack::OPTIMIZED, optimized_ns)] {
        let per_packet = if stack == Stack::ORIGINAL { 550.0 } else { 100.0 };
        let case = Case::guest(stack);
        rows.push(Row { case, ..profiled(1, stack, cost, per_packet) });
    }
    for limit in [1, 2, 5, 10, 35] {
        let cost = optimized_ns - 25.0 + 500.0 / f64::from(limit);
        rows.push(row(1, Stack::limited(limit), cost));
    }
    rows
}

fn made(rows: &[Row], exchange: &[ExchangeRow]) -> Vec<Figure> {
    all(Rows { bulk: rows, exchange }, Units::of_machine())
}

#[test]
fn what_the_paper_found_holds_when_it_is_so_here() {
    let exchanges = [exchange(Stack::ORIGINAL, 10_000.0), exchange(Stack::OPTIMIZED, 9_900.0)];
    let figures = made(&rows(525.0), &exchanges);
    let numbers: Vec<_> = figures.iter().map(|figure| figure.number).collect();
    assert_eq!(numbers, ["3", "7", "8", "9", "10", "11", "12", "Table 1"]);
    for figure in &figures {
        assert!(
            !figure.verdicts().contains(&Some(false)),
            "{}: {:?}",
            figure.number,
            figure.claims
        );
    }
}

#[test]
fn what_is_not_so_here_does_not_hold() {
    let exchanges = [exchange(Stack::ORIGINAL, 10_000.0), exchange(Stack::OPTIMIZED, 9_700.0)];
    let figures = made(&rows(900.0), &exchanges);
    let holds = |number| {
        let figure = figures.iter().find(|figure| figure.number == number).unwrap();
        figure.verdicts()
    };
    assert_eq!(holds("7"), [Some(false); 3]);
    assert_eq!(holds("11")[2], Some(false), "a limit of one costs more than Original");
    assert_eq!(holds("12"), [Some(false)]);
    assert_eq!(holds("Table 1"), [Some(false)]);
}

#[test]
fn what_was_not_measured_is_not_drawn() {
    assert!(made(&[], &[]).is_empty());
    let one = [row(1, Stack::ORIGINAL, 900.0), row(1, Stack::OPTIMIZED, 500.0)];
    let figures = made(&one, &[]);
    let numbers: Vec<_> = figures.iter().map(|figure| figure.number).collect();
    assert_eq!(numbers, ["3", "7", "8"]);
}

#[test]
fn a_profile_is_a_stack_with_the_per_packet_part_bracketed() {
    let figures = made(&rows(525.0), &[]);
    for number in ["8", "9", "10"] {
        let figure = figures.iter().find(|figure| figure.number == number).unwrap();
        assert_eq!(figure.x.first().map(String::as_str), Some("Original"));
        assert_eq!(figure.brackets.len(), figure.x.len());
        // The bracket must end at the last of its categories.
        let is_per_packet =
            |name: &str| Category::PER_PACKET.iter().any(|category| category.name() == name);
        let (below, above): (Vec<_>, Vec<_>) =
            figure.series.iter().partition(|series| is_per_packet(&series.name));
        let sum: f64 = below.iter().filter_map(|series| series.values[0]).sum();
        assert!((sum - figure.brackets[0].to).abs() < 1e-6 && !above.is_empty());
        assert!(is_per_packet(&figure.series[0].name));
    }
}

#[test]
fn the_papers_bars_are_hollow_and_in_the_colour_of_ours() {
    let exchanges = [exchange(Stack::ORIGINAL, 10_000.0), exchange(Stack::OPTIMIZED, 9_900.0)];
    for figure in made(&rows(525.0), &exchanges) {
        for series in figure.series.iter().filter(|series| series.name.starts_with("paper")) {
            assert!(series.is_reference, "{}: {}", figure.number, series.name);
            let mut ours = figure.series.iter().filter(|other| !other.is_reference);
            assert!(ours.any(|other| other.colour == series.colour));
        }
    }
}

/// Returns the verdict on figure 3 for a host whose per-packet routines take `per_packet` of 1,000 ns, and
/// whose application takes 80 ns.
fn much_more(per_packet: f64) -> (Option<bool>, String) {
    let figures = made(&[profiled(1, Stack::ORIGINAL, 1_000.0, per_packet)], &[]);
    let said = &figures[0].claims[0];
    (said.holds(), said.line())
}

#[test]
fn much_more_is_not_a_little_more() {
    let (holds, text) = much_more(81.0);
    assert_eq!(holds, Some(false), "8 % is not much more than 8 %: {text}");
    assert_eq!(much_more(159.0).0, Some(false));
    assert_eq!(much_more(161.0).0, Some(true));
    assert!(text.contains(" 1.01 times,"), "{text}");
}
