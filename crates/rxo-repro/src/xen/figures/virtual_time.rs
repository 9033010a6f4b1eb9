//! Figures on virtual time: packets an aggregate, how long segments are held, and requests.

use super::{at, lines, polls, shown};
use crate::figure::{Figure, Guide, Series};
use crate::statement::Statement;
use crate::xen::paper;
use crate::xen::system::System;
use crate::xen::virtual_time::{Exchange, Rate};

/// Table VI and its sweep.
pub(super) fn aggregates(rates: &[Rate]) -> Figure {
    let value = |rate: &Rate| rate.packets_an_aggregate;
    let da = at(rates, System::Da, paper::FRAMES_A_POLL).map(value);
    let lro = at(rates, System::Lro, paper::FRAMES_A_POLL).map(value);
    let grows = lro.zip(da).map(|(lro, da)| da / lro);
    Figure {
        number: "Table VI",
        title: "Packets an aggregate by frames a poll",
        fixed: "one connection, virtual time",
        x_label: "frames a poll",
        y_label: "packets an aggregate",
        x: polls(rates),
        series: lines(rates, &SHOWN, value),
        guides: [System::Lro, System::Da].into_iter().filter_map(papers_rate).collect(),
        statements: vec![Statement::new(
            "LRO has 2.55 packets an aggregate, Delayed Aggregation 4.71 (Table VI): 1.85 times as \
             many",
            grows.map(|grows| grows >= NEARLY * 4.71 / 2.55),
            format!(
                "At 2.55 frames a poll LRO has {}, Delayed Aggregation {}.",
                shown(lro),
                shown(da)
            ),
        )],
        ..Figure::default()
    }
}

/// The median of what segments are held, with a range that ends at the 99th percentile.
fn held(rates: &[Rate], systems: &[System]) -> Vec<Series> {
    let medians = lines(rates, systems, |rate| rate.hold_p50_us);
    let p99s = lines(rates, systems, |rate| rate.hold_p99_us);
    let ranged = |(median, p99): (Series, Series)| {
        let ends = median.values.iter().zip(&p99.values);
        Series { ranges: ends.map(|(from, to)| from.zip(*to)).collect(), ..median }
    };
    medians.into_iter().zip(p99s).map(ranged).collect()
}

fn papers_rate(system: System) -> Option<Guide> {
    let meaning = if system == System::Da { "the paper's DA" } else { "the paper's LRO" };
    paper::packets_an_aggregate(system).map(|value| Guide { value, meaning })
}

/// How long the first segment of an aggregate is held.
pub(super) fn holds(rates: &[Rate]) -> Figure {
    let da = at(rates, System::Da, paper::FRAMES_A_POLL);
    let auto = rates.iter().filter(|rate| rate.system == System::Auto);
    // A poll of many frames takes longer than the bound by itself.
    let longer = auto.filter_map(|rate| {
        let poll = at(rates, System::Lro, rate.frames_a_poll)?.hold_p99_us;
        Some(rate.hold_p99_us - poll.max(MOST_AUTO_US))
    });
    let longer = longer.reduce(f64::max);
    Figure {
        number: "hold",
        title: "How long the first segment of a delivery is held: the median, up to p99",
        fixed: "60,000 frames a second, virtual time",
        x_label: "frames a poll",
        y_label: "us",
        x: polls(rates),
        series: held(rates, &[System::Lro, System::Da, System::Da4, System::Auto]),
        statements: vec![
            Statement::new(
                "Delayed Aggregation holds an aggregate's first group for 33.17 us longer: two packets \
                 at 60,000 a second",
                at(rates, System::Lro, paper::FRAMES_A_POLL).zip(da).map(|(lro, da)| {
                    let longer = da.hold_p50_us - lro.hold_p50_us;
                    (0.5..=2.0).contains(&(longer / paper::HOLD_US))
                }),
                format!(
                    "The median at 2.55 frames a poll is {} us under LRO and {} us under Delayed \
                     Aggregation. It includes the frames of the segment's own poll.",
                    shown(at(rates, System::Lro, paper::FRAMES_A_POLL).map(|r| r.hold_p50_us)),
                    shown(da.map(|rate| rate.hold_p50_us)),
                ),
            ),
            Statement::new(
                "section V asks for a hold that is bounded and follows the load",
                longer.map(|longer| longer <= 0.0),
                "auto holds for at most 50 us from the arrival of a segment (p99), or to the end of \
                 its own poll if that is later. At 60,000 frames a second the next poll would be too \
                 late, so there auto is end of poll."
                    .to_owned(),
            ),
        ],
        ..Figure::default()
    }
}

/// Table VII.
pub(super) fn table_vii(exchanges: &[Exchange]) -> Figure {
    let of = |system| exchanges.iter().find(|exchange| exchange.system == system);
    let systems = System::DOMAINS;
    let xen = of(System::Xen).map(|exchange| exchange.per_second);
    let within = |system| {
        let rate = of(system).map(|exchange| exchange.per_second);
        rate.zip(xen).map(|(rate, xen)| (rate / xen - 1.0).abs() <= 0.02)
    };
    let waits = systems.iter().filter_map(|system| of(*system)).map(|e| e.held_p99_us);
    let longest = waits.fold(0.0, f64::max);
    Figure {
        number: "Table VII",
        title: "Transactions of one byte a second",
        fixed: "virtual time: the paper's Xen, and what a request waits in the driver domain",
        x_label: "system",
        y_label: "transactions/s",
        x: systems.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("here", systems.map(|system| of(system).map(|e| e.per_second)).to_vec())
                .bars(),
            Series::reference("the paper", systems.map(paper::transactions).to_vec()).bars(),
        ],
        statements: vec![
            Statement::new(
                "Delayed Aggregation and LRO take nothing from requests (Table VII)",
                within(System::Da).zip(within(System::Auto)).map(|(da, auto)| da && auto),
                format!("No request waits for longer than {longest:.1} us (p99)."),
            ),
            Statement::new(
                "auto holds nothing for an idle guest",
                of(System::Auto).map(|exchange| exchange.held_p99_us == 0.0),
                format!("p99 {} us.", shown(of(System::Auto).map(|e| e.held_p99_us))),
            ),
        ],
        ..Figure::default()
    }
}

/// Systems whose aggregates differ.
const SHOWN: [System; 5] = [System::Xen, System::Lro, System::Da, System::Da4, System::Auto];
/// Of the paper's gain: polls that end at timestamps' ticks are shorter.
const NEARLY: f64 = 0.95;
/// The bound of auto.
const MOST_AUTO_US: f64 = 50.0;
