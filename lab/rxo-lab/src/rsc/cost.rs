//! Figures 10 to 12: the processor time of the receiving side, for each level of coalescing, payload and rate.
//!
//! The packets cross the worker of `rxo run`, from a packet socket to the receiving host's TAP. All processor
//! time of this process except the sending thread counts: the worker with its engine, the host's TCP, and the
//! reading application. (The paper subtracted the cost of coalescing; here it is included.) The sender writes
//! as fast as it can without waiting for ACKs, so that Linux joins small writes.

use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use rxo_coalesce::Policy;
use rxo_console::numbers::ratio;
use rxo_demo::machine::Cores;
use rxo_demo::stats::LEAST_BYTES;
use rxo_demo::through::{self, Manner};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CpuMeter, Lab, LabOptions};
use serde::Serialize;

use super::WARM_UP;
use super::faster;
use crate::claim::{Claim, if_so};
use crate::figure::{Figure, Series, Shape};
use crate::limits::Effort;
use crate::runner::Outcome;
use crate::scenario::{Cells, Chart};
use crate::study::Table;

/// Rate limit of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Pace {
    /// 1 Gbit/s, as in the paper's figures 10 and 11.
    OneGbit,
    /// No limit, as in figure 12.
    Unlimited,
}

/// The largest number of packets in an aggregate, by the paper's name.
pub(super) type Level = &'static str;

/// The levels that the paper compares, with their policies. "Regular" packets take the same path, in the same
/// batches.
pub(super) const LEVELS: [(Level, fn() -> Policy); 4] = [
    ("Regular", Policy::none),
    ("RSC_2", Policy::rsc2),
    ("RSC_3", Policy::rsc3),
    ("RSC_5", Policy::rsc5),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    pub(super) pace: Pace,
    pub(super) payload_kb: usize,
    pub(super) level: Level,
}

/// The figures of one measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Sample {
    /// Processor time of the receiving side per byte of payload, and per packet on the wire, in nanoseconds.
    pub(super) ns_per_byte: f64,
    pub(super) ns_per_packet: f64,
    /// Share of one core that the receiving side uses, in percent.
    pub(super) core_percent: f64,
    /// Payload received, in 10^9 bits per second.
    pub(super) gbit_per_s: f64,
    /// Packets from the wire per delivery to the host.
    pub(super) packets_per_delivery: f64,
    /// Mean length of a packet on the wire, in bytes.
    pub(super) packet_bytes: f64,
}

pub(super) type Costs = Cells<Case, Sample>;

/// Measures both paces with these payloads. The levels vary fastest, so that they are measured close together.
pub(super) fn table(payloads_kb: &[usize], effort: Effort) -> Table<Case, Sample> {
    let of = |pace| {
        let case = move |payload_kb, level| Case { pace, payload_kb, level };
        let levels = move |kb: &usize| {
            let kb = *kb;
            LEVELS.map(|(level, _)| case(kb, level))
        };
        payloads_kb.iter().flat_map(levels)
    };
    let cases = [Pace::OneGbit, Pace::Unlimited].into_iter().flat_map(of).collect();
    let name = |Case { pace, payload_kb, level }| {
        let pace = if pace == Pace::OneGbit { "1 Gbit/s" } else { "unlimited" };
        format!("{pace}, {payload_kb} KB, {level}")
    };
    let measure = move |case, _, _: &AtomicBool| measure(case, effort);
    let line =
        |it: &Sample| format!("{:>5.2} Gbit/s  {:.3} ns/byte", it.gbit_per_s, it.ns_per_byte);
    let table = Table::new(("costs", cases), Some(effort.rounds), name, measure, line);
    table.rotated().concluded(|costs| Ok(outcome(costs)))
}

/// Measures one connection through a worker of this level, on a new network.
fn measure(case: Case, effort: Effort) -> Result<Sample> {
    let cores = Cores::choose();
    let limit_bytes_per_s = (case.pace == Pace::OneGbit).then_some(125_000_000);
    let peer_core = cores.sender;
    let lab =
        Lab::through_with(LabOptions { limit_bytes_per_s, peer_core, ..LabOptions::default() })?;
    let policy = LEVELS.iter().find(|(level, _)| *level == case.level);
    let manner = Manner::with(policy.map_or_else(Policy::none, |(_, policy)| policy()));
    let through = through::start(&lab, manner, cores.receiver)?;
    let config = BulkConfig {
        write_bytes: case.payload_kb * 1_024,
        sender_core: cores.sender,
        receiver_core: cores.receiver,
        ..BulkConfig::default()
    };
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?;
    let meter = CpuMeter::new().threads(SENDER, transfer.sender_threads());
    transfer.measure(WARM_UP.min(effort.duration), &meter)?;
    let window = transfer.measure_at_least(effort.duration, LEAST_BYTES, &meter)?;
    let report = transfer.stop()?;
    if let Some(mismatch) = report.mismatch {
        bail!("{mismatch}; please report this");
    }
    let totals = through.finish()?;
    let receiving = window.cpu.total() - window.cpu.part(SENDER).unwrap_or_default();
    let ns_per_byte = ratio(receiving.as_secs_f64() * 1e9, window.received_bytes as f64);
    let payload_bytes = ratio(report.received_bytes as f64, totals.nic_in.frames as f64);
    Ok(Sample {
        ns_per_byte,
        ns_per_packet: ns_per_byte * payload_bytes,
        core_percent: ratio(receiving.as_secs_f64(), window.duration.as_secs_f64()) * 100.0,
        gbit_per_s: window.gbit_per_s(),
        packets_per_delivery: totals.engine.frames_per_delivery(),
        packet_bytes: ratio(totals.nic_in.bytes as f64, totals.nic_in.frames as f64),
    })
}

const SENDER: &str = "sender";

fn outcome(costs: &Costs) -> Outcome {
    if costs.samples().next().is_none() {
        return Outcome::default();
    }
    let projection = faster::figure(costs);
    let facts = [
        if_so("has_costs", true),
        if_so("has_one_gbit", true),
        if_so("is_unprojected", projection.is_none()),
    ];
    let figures = [figure_10(costs), figure_12(costs), projection];
    Outcome {
        figures: figures.into_iter().flatten().collect(),
        facts: facts.into_iter().flatten().collect(),
        ..Outcome::default()
    }
}

/// Returns `true` if the sender reached the paper's rate in most rounds. Otherwise the receiver waited for the
/// sender, and no verdict uses the cost.
pub(super) fn is_valid(costs: &Costs, case: Case) -> bool {
    costs.median(case, |it| it.gbit_per_s).is_some_and(|rate| rate >= REACHED * PAPER_GBIT_PER_S)
}

/// Payload rate of the paper's card of 1 Gbit/s, the same for each payload size (section 6.2).
const PAPER_GBIT_PER_S: f64 = 0.95;
/// Share of the paper's rate that counts as reached; a larger gap exceeds the variation of measurements.
const REACHED: f64 = 0.95;

/// Draws one pace. Points below the paper's rate are marked.
fn figure(costs: &Costs, pace: Pace, chart: &Chart<Case, Sample>) -> Option<Figure> {
    let costs = costs.only(|case| case.pace == pace);
    let mut figure = chart.figure(&costs)?;
    for series in &mut figure.series {
        let cases = costs.cases().filter(|case| case.level == series.name);
        series.invalid = cases.map(|case| !is_valid(&costs, case)).collect();
    }
    let invalid: Vec<Case> = costs.cases().filter(|case| !is_valid(&costs, *case)).collect();
    let rates = || invalid.iter().filter_map(|case| costs.median(*case, |it| it.gbit_per_s));
    let condition = rates().reduce(f64::min).zip(rates().reduce(f64::max)).map(|(low, high)| {
        let mut payloads: Vec<_> = invalid.iter().map(|case| (CHART.x)(*case)).collect();
        payloads.dedup();
        format!(
            "the paper has {PAPER_GBIT_PER_S} Gbit/s at each payload; here the sender reached {low:.2} \
             to {high:.2} with {}.",
            payloads.join(", ")
        )
    });
    Some(Figure { condition, ..figure })
}

const CHART: Chart<Case, Sample> = Chart {
    number: "12",
    x: |case| format!("{} KB", case.payload_kb),
    line: |case| case.level,
    value: |sample| sample.ns_per_byte,
    paper: |_| None,
    shape: Shape::Line,
};

/// Returns the share of one core, in percent, that the paper's rate takes at this cost. A measured share
/// would not do: a machine below the rate would seem to save.
fn at_papers_rate(sample: &Sample) -> f64 {
    sample.ns_per_byte * PAPER_GBIT_PER_S / 8.0 * 100.0
}

fn figure_10(costs: &Costs) -> Option<Figure> {
    let chart = Chart { number: "10", value: at_papers_rate, ..CHART };
    let mut figure = figure(costs, Pace::OneGbit, &chart)?;
    // The only values of figures 10 to 12 that the paper's text states: Windows, 8 KB (figure 11).
    let stated = [
        ("paper, Windows: Regular", 39.5, 0),
        ("paper: RSC_2", 37.8, 1),
        ("paper: RSC_5", 32.6, 3),
    ];
    for (name, value, colour) in stated {
        let values = figure.x.iter().map(|x| (x == "8 KB").then_some(value)).collect();
        figure.series.push(Series::reference(name, values).colour(colour));
    }
    let points = |regular: f64, with: f64| regular - with;
    let claims = [("rsc.fig10.rsc2", "RSC_2"), ("rsc.fig10.rsc5", "RSC_5")];
    let claims = claims.map(|of| saving(costs, Pace::OneGbit, of, (at_papers_rate, points)));
    Some(Figure { claims: claims.to_vec(), ..figure })
}

fn figure_12(costs: &Costs) -> Option<Figure> {
    let percent = |regular: f64, with: f64| (1.0 - with / regular) * 100.0;
    let claims =
        [("rsc.fig12.rsc2", "RSC_2"), ("rsc.fig12.rsc3", "RSC_3"), ("rsc.fig12.rsc5", "RSC_5")];
    let value = CHART.value;
    let claims = claims.map(|of| saving(costs, Pace::Unlimited, of, (value, percent)));
    Some(Figure { claims: claims.to_vec(), ..figure(costs, Pace::Unlimited, &CHART)? })
}

/// Returns a saving from the values of Regular and of a level.
type Saved = fn(f64, f64) -> f64;

/// Makes the claim that every payload saves at least the paper's minimum; the value is that of the payload
/// that saves least, of those whose costs are valid.
fn saving(
    costs: &Costs,
    pace: Pace,
    (id, level): (&str, Level),
    (value, saved): (fn(&Sample) -> f64, Saved),
) -> Claim {
    let of = |with: Case| {
        let regular = Case { level: LEVELS[0].0, ..with };
        let valid = |case| costs.median(case, value).filter(|_| is_valid(costs, case));
        Some((with.payload_kb, saved(valid(regular)?, valid(with)?)))
    };
    let cases = costs.cases().filter(|case| (case.pace, case.level) == (pace, level));
    let all: Vec<(usize, f64)> = cases.filter_map(of).collect();
    let least = all.iter().map(|(_, saved)| *saved).reduce(f64::min);
    let each: Vec<String> =
        all.iter().map(|(kb, saved)| format!("{saved:.1} with {kb} KB")).collect();
    let detail = (!each.is_empty()).then(|| format!("By payload: {}.", each.join(", ")));
    Claim::new(id, least, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes costs in percent of a core at the paper's rate, with the sender's rate.
    fn costs(all: &[(Pace, usize, Level, f64, f64)]) -> Costs {
        let cell =
            |&(pace, payload_kb, level, percent, gbit_per_s): &(Pace, usize, Level, f64, f64)| {
                let sample = Sample {
                    ns_per_byte: percent / 11.875,
                    ns_per_packet: 1_000.0,
                    core_percent: percent,
                    gbit_per_s,
                    packets_per_delivery: 2.0,
                    packet_bytes: 1_514.0,
                };
                (Case { pace, payload_kb, level }, vec![sample])
            };
        Costs::of(all.iter().map(cell).collect())
    }

    #[test]
    fn savings_are_points_at_one_pace_and_shares_at_the_other() {
        let levels = [("Regular", 40.0), ("RSC_2", 37.0), ("RSC_5", 36.0)];
        let at = |pace| levels.map(|(level, percent)| (pace, 8, level, percent, 1.0));
        let figures =
            outcome(&costs([at(Pace::OneGbit), at(Pace::Unlimited)].as_flattened())).figures;
        // 3 and 4 points, where the paper has at least 2 and 5.
        assert_eq!(figures[0].verdicts(), [Some(true), Some(false)]);
        assert!(figures[0].claims[1].line().contains("4.0 with 8 KB"), "{:?}", figures[0].claims);
        assert_eq!(figures[1].verdicts(), [Some(true), None, Some(true)], "without RSC_3");
        assert!(outcome(&costs(&[])).figures.is_empty());
    }

    #[test]
    fn points_without_the_papers_rate_are_in_no_verdict() {
        let all = [
            (Pace::OneGbit, 2, "Regular", 90.0, 0.94),
            (Pace::OneGbit, 2, "RSC_2", 190.0, 0.4),
            (Pace::OneGbit, 8, "Regular", 22.0, 0.94),
            (Pace::OneGbit, 8, "RSC_2", 19.0, 0.94),
        ];
        let figure = figure_10(&costs(&all)).unwrap();
        // 2 KB is invalid and left out; there RSC_2 would cost 100 points.
        assert_eq!(figure.verdicts(), [Some(true), None], "{:?}", figure.claims);
        assert_eq!(figure.series[1].invalid, [true, false]);
        assert_eq!(figure.series[0].invalid, [false, false]);
        let condition = figure.condition.as_deref().unwrap();
        assert!(condition.ends_with("the sender reached 0.40 to 0.40 with 2 KB."), "{condition}");
        assert!(figure_10(&costs(&all[2..])).unwrap().condition.is_none());
        assert_eq!(
            figure_10(&costs(&all[1..2])).unwrap().verdicts(),
            [None; 2],
            "nothing to compare with"
        );
    }
}
