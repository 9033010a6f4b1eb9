//! Figures 4 and 5: packets eliminated over the payload, for several numbers of connections.

use super::super::ceiling::ceiling;
use super::{Captures, least, most, percent};
use crate::figure::{Figure, Guide, Series};
use crate::statement::Statement;

pub(super) fn figure_4(captures: Captures<'_>) -> Figure {
    let statements = [range_of_4(captures), little_variation(captures), eight_kb(captures)];
    let statements = statements.into_iter().flatten().chain(beyond_eight_kb(captures)).collect();
    let guides = vec![
        Guide { value: 5_000.0, meaning: "the paper: from about 50 %" },
        Guide { value: 8_000.0, meaning: "the paper: to 80 %" },
    ];
    by_payload(captures, "4", &FEW, guides, statements)
}

pub(super) fn figure_5(captures: Captures<'_>) -> Figure {
    let guides = vec![Guide { value: 5_000.0, meaning: "the paper: more than 50 %" }];
    by_payload(captures, "5", &MANY, guides, more_than_half(captures).into_iter().collect())
}

fn by_payload(
    captures: Captures<'_>,
    number: &'static str,
    wanted: &[usize],
    guides: Vec<Guide>,
    statements: Vec<Statement>,
) -> Figure {
    let payloads = captures.payloads_kb();
    let line = |connections: usize| {
        let values = payloads.iter().map(|&kb| captures.eliminated(connections, kb));
        Series::new(format!("{connections} connections"), values.collect())
    };
    let mut series: Vec<Series> = captures.connections(wanted).into_iter().map(line).collect();
    if !series.is_empty() {
        let most = payloads.iter().map(|kb| Some(most_possible(*kb))).collect();
        series.push(Series::reference("most possible (PSH, buffer)", most));
    }
    Figure {
        number,
        title: "Packets eliminated of 10,000, by payload",
        fixed: "4 entries, 8 KB buffers, windows of 20 packets",
        x_label: "payload",
        y_label: "packets eliminated of 10,000",
        x: payloads.iter().map(|kb| format!("{kb} KB")).collect(),
        series,
        guides,
        statements,
        ..Figure::default()
    }
}

fn values(captures: Captures<'_>, wanted: &[usize]) -> Vec<(usize, f64)> {
    let connections = captures.connections(wanted);
    let payloads = captures.payloads_kb().into_iter();
    payloads
        .flat_map(|kb| connections.iter().map(move |&count| (kb, count)))
        .filter_map(|(kb, count)| captures.eliminated(count, kb).map(|value| (kb, value)))
        .collect()
}

fn range_of_4(captures: Captures<'_>) -> Option<Statement> {
    let all = values(captures, &FEW);
    let (low, high) = (least(all.iter().map(|v| v.1))?, most(all.iter().map(|v| v.1))?);
    let holds = low >= 5_000.0 - ABOUT && high <= 8_000.0 + ABOUT;
    let ours = format!("{} to {}.", percent(low), percent(high));
    let statement = Statement::new("\"about 50 to 80% coalescing is possible\"", Some(holds), ours);
    Some(
        statement.because(
            "A payload of 2 KB is two segments and ends with PSH: half is the most there can be."
                .into(),
        ),
    )
}

fn little_variation(captures: Captures<'_>) -> Option<Statement> {
    let counts = captures.connections(&FEW);
    let spread = |kb: usize| {
        let at = || counts.iter().filter_map(|&count| captures.eliminated(count, kb));
        Some((kb, most(at())? - least(at())?))
    };
    let spreads = captures.payloads_kb().into_iter().filter_map(spread);
    let (kb, widest) = spreads.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let ours = format!("at most {:.1} points apart, at {kb} KB.", widest / 100.0);
    let paper = "\"not much variation in achievable coalescing between 4, 8 and 16 connections\"";
    Some(Statement::new(paper, (counts.len() > 1).then_some(widest <= 1_000.0), ours))
}

fn eight_kb(captures: Captures<'_>) -> Option<Statement> {
    let paper =
        "at 8 KB the number \"with sixteen connections is slightly smaller than that of 4 and 8\"";
    let sixteen = captures.of(16, 8)?;
    let fewer = [4, 8].into_iter().filter_map(|count| captures.eliminated(count, 8));
    let fewest = least(fewer)?;
    let holds = sixteen.eliminated < fewest;
    let ours = format!(
        "{} with 16, at least {} with fewer.",
        percent(sixteen.eliminated),
        percent(fewest)
    );
    let mixed = sixteen.interleaving;
    Some(Statement::new(paper, Some(holds), ours).unless_it_holds(|| {
        format!(
            "What separates a payload's last segment from its others is the end of a window, and \
             that is as likely with 4 connections as with 16 as long as as few of them send at \
             once: {:.1} flows share a window of 20 packets here, {:.1} segments of one follow \
             each other.",
            mixed.flows_per_window, mixed.segments_per_run
        )
    }))
}

fn beyond_eight_kb(captures: Captures<'_>) -> Option<Statement> {
    let paper = "\"the coalescing at 16KB through 64KB payload sizes is less than that of 8KB\"";
    let counts = captures.connections(&FEW);
    let at = |kb: usize| counts.iter().filter_map(move |&count| captures.eliminated(count, kb));
    let mean = |kb: usize| {
        let (sum, count) = at(kb).fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
        (count > 0.0).then_some(sum / count)
    };
    let eight = mean(8)?;
    let larger = most([16, 32, 64].into_iter().filter_map(mean))?;
    let ours = format!(
        "{} at 8 KB, at most {} above (means of all connections).",
        percent(eight),
        percent(larger)
    );
    Some(Statement::new(paper, Some(larger < eight), ours))
}

fn more_than_half(captures: Captures<'_>) -> Option<Statement> {
    let all = values(captures, &MANY);
    // Two segments with PSH on the second can lose at most half of the packets.
    let (kb, low) = all
        .into_iter()
        .filter(|(kb, _)| most_possible(*kb) > 5_000.0)
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let paper = "\"more than 50% coalescing\" with 16, 30, 60 and 90 connections";
    let captured = captures.connections(&MANY);
    let ours = format!("at least {}, at {kb} KB, with {captured:?} connections.", percent(low));
    // One number of connections that is not captured leaves the statement open, but not one that fails.
    let is_decided = captured.len() == MANY.len() || low <= 5_000.0;
    let statement = Statement::new(paper, is_decided.then_some(low > 5_000.0), ours);
    let two = "With 2 KB, half is the most there can be (two segments, the second with PSH).";
    Some(statement.because(two.into()))
}

fn most_possible(payload_kb: usize) -> f64 {
    ceiling(payload_kb * 1_024, 8_192).round()
}

/// Numbers of connections in figure 4.
const FEW: [usize; 3] = [4, 8, 16];
/// Numbers of connections in figure 5.
const MANY: [usize; 4] = [16, 30, 60, 90];
/// Tolerance of "about": 5 percentage points, in units of 1/10,000.
const ABOUT: f64 = 500.0;
