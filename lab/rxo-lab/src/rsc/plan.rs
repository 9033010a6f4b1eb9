//! The plan of `rxo-lab rsc`, from its flags.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_console::paths::for_folder;
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;

use super::condition::Condition;
use super::cost::{Cost, Pace};
use super::examine::Examined;
use crate::claim::{Fact, if_so};
use crate::flags::{Part, RscFlags};
use crate::limits::{Effort, Limits};

/// Figures 4 to 8: packets eliminated, from captures; figures 10 to 12: processor time, and the projection.
pub(crate) const PARTS: &[Part] = &[Part::timed("captures"), Part::timed("cpu")];

/// The measurements to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Captures for figures 4 to 8; `None` omits them.
    pub(super) captures: Option<CapturePlan>,
    /// Measurements for figures 10 to 12 and the projection; `None` omits them.
    pub(super) cpu: Option<CpuPlan>,
}

impl Plan {
    /// Returns the facts in the notes on the method.
    pub(super) fn facts(
        &self,
        captures: &[Examined],
        costs: &[Cost],
        is_projected: bool,
    ) -> Vec<Fact> {
        let of_lab = match &self.captures {
            Some(CapturePlan::Lab(lab)) => vec![
                ("packets", lab.packets.to_string()),
                ("mbit", (lab.bytes_per_s / 125_000).to_string()),
                ("burst", lab.burst_frames.to_string()),
            ],
            _ => Vec::new(),
        };
        let lost: u64 = captures.iter().map(|examined| examined.lost_frames).sum();
        let damaged = captures.iter().filter(|examined| examined.damage.is_some());
        let damaged: Vec<&str> = damaged.map(|examined| examined.name.as_str()).collect();
        let has_costs = !costs.is_empty();
        let conditions = [
            (lost > 0).then(|| ("lost", lost.to_string())),
            (!damaged.is_empty()).then(|| ("damaged", damaged.join(", "))),
            if_so("has_captures", !captures.is_empty()),
            if_so("has_costs", has_costs),
            if_so("has_one_gbit", costs.iter().any(|cost| cost.pace == Pace::OneGbit)),
            if_so("is_unprojected", has_costs && !is_projected),
        ];
        of_lab.into_iter().chain(conditions.into_iter().flatten()).collect()
    }
}

/// Source of the captures.
#[derive(Clone, Debug)]
pub(super) enum CapturePlan {
    /// Captures of the lab's senders, made here.
    Lab(LabPlan),
    /// Existing captures in a directory.
    Directory(PathBuf),
}

/// Parameters for making captures.
#[derive(Clone, Debug)]
pub(super) struct LabPlan {
    pub(super) conditions: Vec<Condition>,
    pub(super) packets: usize,
    pub(super) bytes_per_s: u64,
    /// Frames that a sender's link sends back to back.
    pub(super) burst_frames: u32,
    /// Time that senders send before a measurement, so that their windows have opened.
    pub(super) warm_up: Duration,
    pub(super) keep: Option<PathBuf>,
    pub(super) cores: Cores,
}

/// Parameters for measuring processor time.
#[derive(Clone, Debug)]
pub(super) struct CpuPlan {
    pub(super) payloads_kb: Vec<usize>,
    pub(super) effort: Effort,
    pub(super) warm_up: Duration,
    pub(super) cores: Cores,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a number or a time is invalid, or flags contradict each other; the message describes valid values.
    pub(crate) fn from_flags(flags: &RscFlags) -> Result<Self> {
        let parts = flags.run.chosen(PARTS)?;
        // Brought captures are studied alone, unless --only says otherwise.
        let brought = flags.captures.is_some() && flags.run.only.is_empty();
        let (captures, cpu) = (CapturePlan::from_flags(flags)?, CpuPlan::from_flags(flags)?);
        if flags.captures.is_some() && !parts.has("captures") {
            return Err(usage("--captures is for the part captures, which --only leaves out"));
        }
        Ok(Self {
            captures: parts.has("captures").then_some(captures),
            cpu: (parts.has("cpu") && !brought).then_some(cpu),
        })
    }
}

impl CapturePlan {
    fn from_flags(flags: &RscFlags) -> Result<Self> {
        let packets = flags.packets.unwrap_or(if flags.run.is_quick() { 2_000 } else { 10_000 });
        within("--packets", packets, PACKETS)?;
        within("--rate", flags.rate, RATES_MBIT_PER_S)?;
        within("--burst", flags.burst, BURSTS)?;
        if let Some(directory) = &flags.captures {
            return Ok(Self::Directory(directory.clone()));
        }
        let (connections, payloads): (&[_], &[_]) = if flags.run.is_quick() {
            (&[4, 16], &[2, 8, 64])
        } else {
            (&CONNECTIONS, &PAYLOADS_KB)
        };
        let conditions = connections.iter().flat_map(|&connections| {
            payloads.iter().map(move |&payload_kb| Condition { connections, payload_kb })
        });
        Ok(Self::Lab(LabPlan {
            conditions: conditions.collect(),
            packets,
            bytes_per_s: flags.rate * 125_000,
            burst_frames: flags.burst,
            warm_up: WARM_UP,
            keep: flags.keep.as_deref().map(|path| for_folder("--keep", path)).transpose()?,
            cores: Cores::choose(),
        }))
    }
}

impl CpuPlan {
    fn from_flags(flags: &RscFlags) -> Result<Self> {
        let effort = LIMITS.effort(&flags.run)?;
        Ok(Self {
            payloads_kb: if flags.run.is_quick() { vec![8] } else { PAYLOADS_KB.to_vec() },
            warm_up: WARM_UP.min(effort.duration),
            effort,
            cores: Cores::choose(),
        })
    }
}

/// Numbers of connections in figures 4 and 5.
const CONNECTIONS: [usize; 6] = [4, 8, 16, 30, 60, 90];
const PAYLOADS_KB: [usize; 6] = [2, 4, 8, 16, 32, 64];
const PACKETS: RangeInclusive<usize> = 500..=200_000;
const RATES_MBIT_PER_S: RangeInclusive<u64> = 10..=1_000;
const BURSTS: RangeInclusive<u32> = 1..=64;
const LIMITS: Limits = Limits {
    rounds: [5, 1],
    most_rounds: 1_000,
    durations: [Duration::from_millis(800), Duration::from_millis(200)],
    shortest: Duration::from_millis(100),
};
const WARM_UP: Duration = Duration::from_millis(400);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;
    use crate::runner::Experiment;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed::<RscFlags>(line)?)
    }

    #[test]
    fn without_flags_it_is_the_papers_experiments() {
        let plan = plan("").unwrap();
        let Some(CapturePlan::Lab(lab)) = plan.captures else { panic!("{plan:?}") };
        assert_eq!((lab.conditions.len(), lab.packets), (36, 10_000));
        assert_eq!(plan.cpu.unwrap().effort.rounds, 5);
    }

    #[test]
    fn captures_that_were_brought_are_studied_and_nothing_else() {
        let brought = plan("--captures traces").unwrap();
        assert!(matches!(brought.captures, Some(CapturePlan::Directory(_))));
        assert!(brought.cpu.is_none() && !brought.needs_networks());
        let both = plan("--captures traces --only captures,cpu").unwrap();
        assert!(both.cpu.is_some() && both.needs_networks());
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("--packets 100", "--packets 100: choose 500 to 200000"),
            ("--rate 5000", "--rate 5000: choose 10 to 1000"),
            ("--burst 0", "--burst 0: choose 1 to 64"),
            ("--rounds 0", "--rounds 0: choose 1 to 1000"),
            ("--seconds 1h", "--seconds 1h: choose 0.1s to 60s"),
            ("--keep Cargo.toml", "--keep Cargo.toml: that is a file"),
            ("--captures x --only cpu", "--captures is for the part captures"),
        ];
        for (flags, message) in rows {
            let error = plan(flags).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
