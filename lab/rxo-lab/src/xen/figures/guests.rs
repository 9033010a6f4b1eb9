//! Figures of live guests: times of requests, and several guests at once.

use rxo_demo::stats::Spread;
use rxo_testbed::median_bounds;

use super::{OF_GUESTS, colour, shown};
use crate::figure::{Figure, Series};
use crate::statement::Statement;
use crate::xen::guest::exchange::{Latency, Requests, Turn};
use crate::xen::guest::several::Several;
use crate::xen::paper;
use crate::xen::system::System;

/// Draws requests and responses of all systems, over the guests of all boots.
pub(super) fn requests(boots: &[Requests]) -> [Figure; 2] {
    let turns: Vec<Turn> = boots.iter().flat_map(|boot| boot.rounds.concat()).collect();
    let systems = || System::RECEIVERS.map(|system| system.name().to_owned()).to_vec();
    let column = |value: fn(&Latency) -> f64| {
        System::RECEIVERS.map(|system| Spread::of(of(&turns, system).map(|it| value(&it.latency))))
    };
    let times = Figure {
        number: OF_GUESTS[3],
        title: "What a transaction of one byte takes with a Linux guest",
        fixed: "the guests are emulated; systems in turn with the same guest",
        x_label: "system",
        y_label: "us",
        x: systems(),
        series: vec![
            Series::of_spreads("median", column(|latency| latency.p50_us).to_vec()).bars(),
            Series::of_spreads("99th percentile", column(|latency| latency.p99_us).to_vec()).bars(),
        ],
        statements: vec![within(&turns, System::Da), within(&turns, System::Auto), idle(boots)],
        ..Figure::default()
    };
    let rates = Figure {
        number: OF_GUESTS[9],
        title: "Transactions of one byte a second with a Linux guest (Table VII)",
        fixed: "the guests are emulated; systems in turn with the same guest",
        x_label: "system",
        y_label: "transactions/s",
        x: systems(),
        series: vec![
            Series::of_spreads("here", column(|latency| latency.per_second).to_vec()).bars(),
            Series::reference("the paper", System::RECEIVERS.map(paper::transactions).to_vec())
                .bars(),
        ],
        ..Figure::default()
    };
    [times, rates]
}

fn of(turns: &[Turn], system: System) -> impl Iterator<Item = &Turn> {
    turns.iter().filter(move |turn| turn.system == system)
}

/// Decides whether a transaction of `system` takes as long as Xen's, by the median of all rounds. The verdict
/// is open if chance could decide it.
fn within(turns: &[Turn], system: System) -> Statement {
    let grown = |value: fn(&Latency) -> f64| -> Vec<f64> {
        let of_xen = |turn: &Turn| Some(value(&turn.latency) / value(&turn.xen?));
        of(turns, system).filter_map(of_xen).collect()
    };
    let (medians, p99s) = (grown(|latency| latency.p50_us), grown(|latency| latency.p99_us));
    let bounds = median_bounds(&medians);
    let ranged = |values: &[f64]| {
        Spread::of(values.iter().copied()).map_or("-".to_owned(), |spread| spread.ranged(3))
    };
    let bounded =
        bounds.map_or("not known".to_owned(), |(low, high)| format!("{low:.3} to {high:.3}"));
    let claim = match system {
        System::Auto => "requests under auto take at most 2 % longer than without coalescing",
        _ => "Delayed Aggregation takes nothing from requests (Table VII); here at most 2 %",
    };
    let statement = Statement::new(
        claim,
        bounds.and_then(|(low, high)| match () {
            () if high <= MOST_GROWN => Some(true),
            () if low > MOST_GROWN => Some(false),
            () => None,
        }),
        format!(
            "In {} rounds the median of {} is {} of Xen's with the same guest; the middle is {bounded} at 95 %. \
             The 99th percentile is {}.",
            medians.len(),
            system.name(),
            ranged(&medians),
            ranged(&p99s),
        ),
    );
    if system == System::Auto { statement.aim() } else { statement }
}

/// Decides whether auto held nothing for an idle guest.
fn idle(boots: &[Requests]) -> Statement {
    let auto_held: u64 = boots.iter().map(|boot| boot.auto_held).sum();
    let hold_p99_us = boots.iter().map(|boot| boot.hold_p99_us).fold(0.0, f64::max);
    Statement::new(
        "auto, whose hold follows the load as section V proposes, holds nothing for an idle guest",
        (!boots.is_empty()).then_some(auto_held == 0),
        format!(
            "auto held {auto_held} requests beyond their poll. From the card into the guest requests took at most \
             {hold_p99_us:.1} us (p99): that is the wait for the worker's turn.",
        ),
    )
    .aim()
}

/// Draws the cost per byte of each of several guests.
pub(super) fn several(all: &[Several]) -> Figure {
    let grown = all.iter().filter(|case| case.guests > 1).filter_map(|case| {
        let alone = all.iter().find(|one| one.system == case.system && one.guests == 1)?;
        Some(case.instructions_a_byte() / alone.instructions_a_byte())
    });
    let grown = grown.reduce(f64::max);
    Figure {
        number: "guests",
        title: "Instructions of each guest for a byte, several at once",
        fixed: "polls as rxo guest has them; the range is that of the guests",
        x_label: "guests",
        y_label: "instructions a byte",
        x: counts(all),
        series: by_system(all, |case| Spread::over(&case.each, |share| share.instructions_a_byte)),
        statements: vec![
            Statement::new(
                "beside others a guest pays at most 15 % more for a byte than alone",
                grown.map(|grown| grown <= MOST_BESIDE_OTHERS),
                format!(
                    "Beside others a guest pays at most {} of what it pays alone.",
                    shown(grown)
                ),
            )
            .aim(),
        ],
        ..Figure::default()
    }
}

/// Draws the total rate of several guests.
pub(super) fn several_rate(all: &[Several]) -> Figure {
    Figure {
        number: "guests rate",
        title: "What several guests receive together",
        fixed: "the guests are emulated and counted, which decides the rate",
        x_label: "guests",
        y_label: "Mbit/s",
        x: counts(all),
        series: by_system(all, |case| {
            Spread::of([case.each.iter().map(|share| share.mbit_per_s).sum()])
        }),
        ..Figure::default()
    }
}

/// Draws requests to one guest, while the other guests are idle and while they receive.
pub(super) fn several_requests(all: &[Several]) -> Figure {
    let name = |case: &Several| format!("{}, {}", case.system.name(), case.guests);
    let idle = all.iter().map(|case| Some(case.idle.p99_us)).collect();
    let busy = all.iter().map(|case| case.beside_bulk.map(|latency| latency.p99_us)).collect();
    Figure {
        number: "guests requests",
        title: "Requests to one of several guests, 99th percentile",
        fixed: "transactions of one byte; the guests are emulated",
        x_label: "system, guests",
        y_label: "us",
        x: all.iter().map(name).collect(),
        series: vec![
            Series::new("the others do nothing", idle).bars(),
            Series::new("the others receive in bulk", busy).bars(),
        ],
        ..Figure::default()
    }
}

/// Returns the numbers of guests that were measured, each once, in order.
fn guest_counts(all: &[Several]) -> Vec<usize> {
    let mut counts: Vec<_> = all.iter().map(|case| case.guests).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn counts(all: &[Several]) -> Vec<String> {
    guest_counts(all).iter().map(usize::to_string).collect()
}

/// Returns bars for each system, by the number of guests.
fn by_system(all: &[Several], value: impl Fn(&Several) -> Option<Spread>) -> Vec<Series> {
    let systems = System::ALL.into_iter();
    let present = systems.filter(|system| all.iter().any(|case| case.system == *system));
    let bars = |system: System| {
        let spreads = guest_counts(all).into_iter().map(|guests| {
            let case = all.iter().find(|case| case.system == system && case.guests == guests);
            case.and_then(&value)
        });
        Series::of_spreads(system.name(), spreads.collect()).bars().colour(colour(system))
    };
    present.map(bars).collect()
}

/// Largest ratio that counts as equal: growth of 2 %.
const MOST_GROWN: f64 = 1.02;
/// Largest ratio beside other guests: 15 %. Polls vary, so counts differ by some percent.
const MOST_BESIDE_OTHERS: f64 = 1.15;
