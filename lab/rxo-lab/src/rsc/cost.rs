//! Measures the processor time of the receiving side, for each level of coalescing, payload and rate.
//!
//! The packets cross the worker of `rxo run`, from a packet socket to the receiving host's TAP. All processor
//! time of this process except the sending thread counts: the worker with its engine, the host's TCP, and the
//! reading application. (The paper subtracted the cost of coalescing; here it is included.) The sender writes
//! as fast as it can without waiting for ACKs, so that Linux joins small writes.

use anyhow::{Result, bail};
use rxo_console::numbers::ratio;
use rxo_demo::stats::{LEAST_BYTES, Spread};
use rxo_demo::through::{self, Manner};
use rxo_demo::turns::{Cases, Turns};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CpuMeter, Lab, LabOptions};
use serde::Serialize;

use super::level::Level;
use super::plan::CpuPlan;

/// Rate limit of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Pace {
    /// 1 Gbit/s, as in the paper's figures 10 and 11.
    OneGbit,
    /// No limit, as in figure 12.
    Unlimited,
}

impl Pace {
    pub(super) const ALL: [Self; 2] = [Self::OneGbit, Self::Unlimited];

    const fn limit_bytes_per_s(self) -> Option<u64> {
        match self {
            Self::OneGbit => Some(125_000_000),
            Self::Unlimited => None,
        }
    }
}

/// Cost of one level at one pace with one payload: medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cost {
    pub(super) pace: Pace,
    pub(super) payload_kb: usize,
    pub(super) level: Level,
    /// Processor time of the receiving side per byte of payload, in nanoseconds.
    pub(super) ns_per_byte: Spread,
    /// Processor time of the receiving side per packet on the wire, in nanoseconds.
    pub(super) ns_per_packet: Spread,
    /// Share of one core that the receiving side uses, in percent.
    pub(super) core_percent: Spread,
    /// Payload received, in 10^9 bits per second.
    pub(super) gbit_per_s: Spread,
    /// Packets from the wire per delivery to the host.
    pub(super) packets_per_delivery: Spread,
    /// Mean length of a packet on the wire, in bytes.
    pub(super) packet_bytes: f64,
    pub(super) rounds: usize,
    /// `true` if the sender reached the paper's 0.95 Gbit/s. Otherwise the receiver waited for the sender,
    /// and no verdict uses the measurement.
    pub(super) is_valid: bool,
}

/// Payload rate of the paper's card of 1 Gbit/s, the same for each payload size (section 6.2).
pub(super) const PAPER_GBIT_PER_S: f64 = 0.95;
/// Share of the paper's rate that counts as reached; a larger gap exceeds the variation of measurements.
const REACHED: f64 = 0.95;

/// Returns `true` if `gbit_per_s` is about the paper's rate or more.
pub(super) fn reaches(gbit_per_s: f64) -> bool {
    gbit_per_s >= REACHED * PAPER_GBIT_PER_S
}

/// The figures of one measurement.
#[derive(Clone, Copy, Debug)]
struct Sample {
    ns_per_byte: f64,
    ns_per_packet: f64,
    core_percent: f64,
    gbit_per_s: f64,
    packets_per_delivery: f64,
    packet_bytes: f64,
}

/// Measures all levels in turn. After an interrupt, returns the costs so far.
///
/// # Errors
/// If a network cannot be built, a transfer breaks, or wrong bytes arrive.
pub(super) fn measured(plan: &CpuPlan, turns: &Turns<'_>) -> Result<Vec<Cost>> {
    let cases = cases(plan);
    let samples = turns.measure(
        Cases { cases: &cases, rounds: plan.effort.rounds, rotated: cases.len() },
        Case::name,
        |case, _| measure(case, plan),
        |s: &Sample| format!("{:>5.2} Gbit/s  {:.3} ns/byte", s.gbit_per_s, s.ns_per_byte),
    )?;
    Ok(costs(&cases, &samples))
}

/// Returns the number of measurements in a plan.
pub(super) fn steps(plan: &CpuPlan) -> usize {
    plan.effort.rounds * cases(plan).len()
}

#[derive(Clone, Copy, Debug)]
struct Case {
    pace: Pace,
    payload_kb: usize,
    level: Level,
}

impl Case {
    fn name(self) -> String {
        let pace = match self.pace {
            Pace::OneGbit => "1 Gbit/s",
            Pace::Unlimited => "unlimited",
        };
        format!("{pace}, {} KB, {}", self.payload_kb, self.level.name())
    }
}

/// Returns the cases. The levels vary fastest, so that they are measured close together.
fn cases(plan: &CpuPlan) -> Vec<Case> {
    let mut cases = Vec::new();
    for pace in Pace::ALL {
        for &payload_kb in &plan.payloads_kb {
            cases.extend(Level::ALL.map(|level| Case { pace, payload_kb, level }));
        }
    }
    cases
}

fn costs(cases: &[Case], samples: &[Vec<Sample>]) -> Vec<Cost> {
    let pairs = cases.iter().zip(samples);
    pairs.filter_map(|(&case, samples)| cost(case, samples)).collect()
}

/// Makes the cost of `case`; `None` if there is no sample.
fn cost(case: Case, samples: &[Sample]) -> Option<Cost> {
    let spread = |value: fn(&Sample) -> f64| Some(Spread::over(samples, value)?.rounded(4));
    Some(Cost {
        pace: case.pace,
        payload_kb: case.payload_kb,
        level: case.level,
        is_valid: reaches(spread(|sample| sample.gbit_per_s)?.median),
        ns_per_byte: spread(|sample| sample.ns_per_byte)?,
        ns_per_packet: spread(|sample| sample.ns_per_packet)?,
        core_percent: spread(|sample| sample.core_percent)?,
        gbit_per_s: spread(|sample| sample.gbit_per_s)?,
        packets_per_delivery: spread(|sample| sample.packets_per_delivery)?,
        packet_bytes: spread(|sample| sample.packet_bytes)?.median,
        rounds: samples.len(),
    })
}

/// Measures one connection through a worker of this level, on a new network.
fn measure(case: Case, plan: &CpuPlan) -> Result<Sample> {
    let cores = plan.cores;
    let lab = Lab::through_with(LabOptions {
        limit_bytes_per_s: case.pace.limit_bytes_per_s(),
        peer_core: cores.sender,
        ..LabOptions::default()
    })?;
    let manner = Manner::with(case.level.policy());
    let through = through::start(&lab, manner, cores.receiver)?;
    let config = BulkConfig {
        write_bytes: case.payload_kb * 1_024,
        sender_core: cores.sender,
        receiver_core: cores.receiver,
        ..BulkConfig::default()
    };
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?;
    let meter = CpuMeter::new().threads(SENDER, transfer.sender_threads());
    transfer.measure(plan.warm_up, &meter)?;
    let window = transfer.measure_at_least(plan.effort.duration, LEAST_BYTES, &meter)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_rate_is_a_condition() {
        let sample = |gbit_per_s| Sample {
            ns_per_byte: 1.0,
            ns_per_packet: 1_000.0,
            core_percent: 10.0,
            gbit_per_s,
            packets_per_delivery: 2.0,
            packet_bytes: 1_514.0,
        };
        let case = Case { pace: Pace::OneGbit, payload_kb: 2, level: Level::Regular };
        let is_valid = |rates: [f64; 3]| cost(case, &rates.map(sample)).unwrap().is_valid;
        // The median decides validity.
        assert!(is_valid([0.94, 0.94, 0.2]) && is_valid([5.0, 5.0, 5.0]));
        assert!(!is_valid([0.94, 0.4, 0.4]) && !is_valid([0.89, 0.89, 0.89]));
    }
}
