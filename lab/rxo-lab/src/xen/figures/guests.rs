//! Figures of live guests: times of requests, and several guests at once.

use rxo_demo::stats::Spread;
use rxo_testbed::median_bounds;

use super::colour;
use crate::claim::{Claim, Ours};
use crate::figure::{Figure, Series};
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
        number: "requests",
        x: systems(),
        series: vec![
            Series::of_spreads("median", column(|latency| latency.p50_us).to_vec()).bars(),
            Series::of_spreads("99th percentile", column(|latency| latency.p99_us).to_vec()).bars(),
        ],
        claims: vec![
            within("xen.requests.da", &turns, System::Da),
            within("xen.requests.auto", &turns, System::Auto),
            idle(boots),
        ],
        ..Figure::default()
    };
    let rates = Figure {
        number: "requests rate",
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

/// Compares a transaction of `system` with Xen's, by the median of all rounds and its bounds at 95 %.
fn within(id: &str, turns: &[Turn], system: System) -> Claim {
    let grown = |value: fn(&Latency) -> f64| -> Vec<f64> {
        let of_xen = |turn: &Turn| Some(value(&turn.latency) / value(&turn.xen?));
        of(turns, system).filter_map(of_xen).collect()
    };
    let (medians, p99s) = (grown(|latency| latency.p50_us), grown(|latency| latency.p99_us));
    let median = Spread::of(medians.iter().copied()).map(|spread| spread.median);
    let p99 = Spread::of(p99s).map(|spread| {
        format!("The 99th percentile is {} of Xen's with the same guest.", spread.ranged(3))
    });
    let ours = median.map(|median| match median_bounds(&medians) {
        Some(bounds) => Ours::between(median, bounds, medians.len()),
        // Too few rounds decide nothing.
        None => Ours::between(median, (0.0, f64::MAX), medians.len()),
    });
    Claim::new(id, ours, p99)
}

/// Makes the claim that auto held nothing for an idle guest.
fn idle(boots: &[Requests]) -> Claim {
    let auto_held: u64 = boots.iter().map(|boot| boot.auto_held).sum();
    let hold_p99_us = boots.iter().map(|boot| boot.hold_p99_us).fold(0.0, f64::max);
    let detail = format!(
        "From the card into the guest requests took at most {hold_p99_us:.1} us (p99): that is the wait for the \
         worker's turn."
    );
    let held = (!boots.is_empty()).then_some(auto_held as f64);
    Claim::new("xen.requests.auto.idle", held, detail)
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
        x: counts(all),
        series: by_system(all, |case| Spread::over(&case.each, |share| share.instructions_a_byte)),
        claims: vec![Claim::new("xen.several.beside", grown, None)],
        ..Figure::default()
    }
}

/// Draws the total rate of several guests.
pub(super) fn several_rate(all: &[Several]) -> Figure {
    Figure {
        number: "guests rate",
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
