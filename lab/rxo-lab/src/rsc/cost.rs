//! Figures 10 to 12: the processor time of the receiving side, for each level of coalescing, payload and rate.
//!
//! The packets cross the worker of `rxo run`, from a packet socket to the receiving host's TAP. All processor
//! time of this process except the sending thread counts: the worker with its engine, the host's TCP, and the
//! reading application. (The paper subtracted the cost of coalescing; here it is included.) The sender writes
//! as fast as it can without waiting for ACKs, so that Linux joins small writes.

use anyhow::{Result, bail};
use rxo_coalesce::Policy;
use rxo_console::numbers::ratio;
use rxo_demo::machine::Cores;
use rxo_demo::stats::{LEAST_BYTES, Spread};
use rxo_demo::through::{self, Manner};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CpuMeter, Lab, LabOptions};
use serde::Serialize;
use serde_json::Value;

use super::WARM_UP;
use crate::limits::Effort;
use crate::study::{Rows, Table, by_fields};

/// Rate limit of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Pace {
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
    pace: Pace,
    payload_kb: usize,
    level: Level,
}

/// The figures of one measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Sample {
    /// Processor time of the receiving side per byte of payload, and per packet on the wire, in nanoseconds.
    ns_per_byte: f64,
    ns_per_packet: f64,
    /// Share of one core that the receiving side uses, in percent.
    core_percent: f64,
    /// Payload received, in 10^9 bits per second.
    gbit_per_s: f64,
    /// Packets from the wire per delivery to the host.
    packets_per_delivery: f64,
    /// Mean length of a packet on the wire, in bytes.
    packet_bytes: f64,
}

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
    let measure = move |case, _| measure(case, effort);
    let shown = ("ns_per_byte", "ns/byte");
    let table = Table::timed(("costs", cases), effort.rounds, by_fields, measure, shown);
    table.rotated().row_by_row()
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

/// Marks the costs of each case as valid if the sender reached the paper's rate in most rounds. Otherwise the receiver
/// waited for the sender, and no verdict uses them.
pub(super) fn add_validity(rows: &mut Rows) {
    let Some(costs) = rows["costs"].as_array_mut() else { return };
    let is_valid = |cost: &Value| {
        median(costs, cost, "gbit_per_s").is_some_and(|rate| rate >= REACHED * PAPER_GBIT_PER_S)
    };
    let valid: Vec<bool> = costs.iter().map(is_valid).collect();
    costs.iter_mut().zip(valid).for_each(|(cost, is_valid)| cost["is_valid"] = is_valid.into());
}

/// Returns the median of `field` in the costs of the same case as `cost`.
pub(super) fn median(costs: &[Value], cost: &Value, field: &str) -> Option<f64> {
    let is_alike = |other: &&Value| {
        ["pace", "payload_kb", "level"].iter().all(|field| other[field] == cost[field])
    };
    let values = costs.iter().filter(is_alike).filter_map(|other| other[field].as_f64());
    Spread::of(values).map(|spread| spread.median)
}

/// Payload rate of the paper's card of 1 Gbit/s, the same for each payload size (section 6.2).
const PAPER_GBIT_PER_S: f64 = 0.95;
/// Share of the paper's rate that counts as reached; a larger gap exceeds the variation of measurements.
const REACHED: f64 = 0.95;
