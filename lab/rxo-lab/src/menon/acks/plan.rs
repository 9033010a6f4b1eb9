//! The plan of `rxo-lab menon acks`, from its flags.

use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_demo::experiment::Output;
use rxo_demo::machine::Cores;

use super::network::{Link, Network};
use super::sender::Sender;
use crate::flags::{AcksExperiment, AcksFlags};
use crate::limits::{Effort, Limits};

/// The plan: everything that is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Senders of the first experiment; none leaves it out.
    pub(super) senders: Vec<Sender>,
    pub(super) networks: Vec<Network>,
    /// Senders of the second experiment; none leaves it out.
    pub(super) keep_senders: Vec<Sender>,
    /// What is tried in it.
    pub(super) keep_every: Vec<u16>,
    /// How often, and how long each connection sends.
    pub(super) effort: Effort,
    pub(super) bytes_per_s: u64,
    pub(super) cores: Cores,
    pub(super) output: Output,
}

impl Plan {
    /// The plan for what was typed.
    ///
    /// # Errors
    /// When a number or a time is invalid; the message says what would be accepted.
    pub(crate) fn from_flags(flags: &AcksFlags) -> Result<Self> {
        let AcksFlags { measure, only, out, rate } = flags;
        let wanted = |part| only.is_empty() || only.contains(&part);
        let quick = measure.extent.quick;
        let senders: &[Sender] =
            if quick { &[Sender::Counting, Sender::Cubic] } else { &Sender::ALL };
        let linux: &[Sender] = if quick { &[Sender::Cubic] } else { &Sender::LINUX };
        let networks: &[Network] = if quick { &[Network::Delay] } else { &Network::ALL };
        let keep: &[u16] = if quick { &[2, 64] } else { &KEEP_EVERY };
        let split = if wanted(AcksExperiment::Split) { senders } else { &[] };
        let kept = if wanted(AcksExperiment::KeepEvery) { linux } else { &[] };
        let rate = rate.unwrap_or(if quick { QUICK_MBIT } else { MBIT });
        Ok(Self {
            senders: split.to_vec(),
            networks: networks.to_vec(),
            keep_senders: kept.to_vec(),
            keep_every: keep.to_vec(),
            effort: LIMITS.effort(measure)?,
            bytes_per_s: bytes_per_s(rate)?,
            cores: Cores::choose(),
            output: Output::drawn(measure.extent.json, out)?,
        })
    }

    /// The link in round `round`: the same losses for all that is compared.
    pub(super) const fn link(&self, round: usize) -> Link {
        Link { bytes_per_s: self.bytes_per_s, seed: 1 + round as u64 }
    }

    /// The time that so many full frames take on the link; at most 10 ms.
    pub(super) fn time_of_frames(&self, frames: u32) -> Duration {
        let each = Duration::from_secs_f64(SEGMENT_FRAME / self.bytes_per_s as f64);
        (each * frames).min(LONGEST_GATHER)
    }

    /// What the link carries of payload, in full segments with timestamps.
    pub(super) fn payload_bytes_per_s(&self) -> f64 {
        self.bytes_per_s as f64 * SEGMENT_PAYLOAD / SEGMENT_FRAME
    }
}

fn bytes_per_s(mbit: u64) -> Result<u64> {
    if MBITS.contains(&mbit) {
        return Ok(mbit * 125_000);
    }
    Err(usage(format!("--rate {mbit}: choose 10 to 10000 Mbit/s")))
}

const KEEP_EVERY: [u16; 6] = [2, 4, 8, 16, 32, 64];
const LIMITS: Limits = Limits {
    rounds: [2, 1],
    most_rounds: 100,
    durations: [Duration::from_secs(4), Duration::from_millis(600)],
    shortest: Duration::from_millis(300),
};
const MBITS: std::ops::RangeInclusive<u64> = 10..=10_000;
/// Well below what the counting sender, a thread with a packet socket, sends on two cores.
const MBIT: u64 = 200;
/// What also a build without optimisation carries.
const QUICK_MBIT: u64 = 50;
const LONGEST_GATHER: Duration = Duration::from_millis(10);
const SEGMENT_PAYLOAD: f64 = 1_448.0;
const SEGMENT_FRAME: f64 = 1_514.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed::<AcksFlags>(&format!("--quick {line}"))?)
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let rows = [
            ("--rounds 0", "--rounds 0: choose 1 to 100"),
            ("--seconds 61s", "--seconds 61s: choose 0.3s to 60s"),
            ("--rate 1", "--rate 1: choose 10 to 10000 Mbit/s"),
        ];
        for (flags, message) in rows {
            assert_eq!(plan(flags).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn one_experiment_leaves_the_other_out() {
        assert!(plan("--only split").unwrap().keep_senders.is_empty());
        assert!(plan("--only keep-every").unwrap().senders.is_empty());
        let both = plan("").unwrap();
        assert!(!both.senders.is_empty() && !both.keep_senders.is_empty());
    }
}
