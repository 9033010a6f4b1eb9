//! The plan of `rxo-lab menon acks`, from its flags.

use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_demo::machine::Cores;

use super::network::{Link, Network};
use super::sender::Sender;
use super::{keep, split};
use crate::claim::Fact;
use crate::flags::{AcksFlags, Part};
use crate::limits::{Effort, Limits};

/// Receivers that coalesce data, and their ACKs split again; senders whose pure ACKs are aggregated.
pub(crate) const PARTS: &[Part] = &[Part::timed("split"), Part::timed("keep-every")];

/// The measurements to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Senders of the first experiment; empty to omit it.
    pub(super) senders: Vec<Sender>,
    pub(super) networks: Vec<Network>,
    /// Senders of the second experiment; empty to omit it.
    pub(super) keep_senders: Vec<Sender>,
    /// Settings of `keep_every` in the second experiment.
    pub(super) keep_every: Vec<u16>,
    /// Number of rounds, and the time for which each connection sends.
    pub(super) effort: Effort,
    pub(super) bytes_per_s: u64,
    pub(super) cores: Cores,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a number or a time is invalid; the message describes valid values.
    pub(crate) fn from_flags(flags: &AcksFlags) -> Result<Self> {
        let AcksFlags { run, rate } = flags;
        let (parts, quick) = (run.chosen(PARTS)?, run.is_quick());
        let senders: &[Sender] =
            if quick { &[Sender::Counting, Sender::Cubic] } else { &Sender::ALL };
        let linux: &[Sender] = if quick { &[Sender::Cubic] } else { &Sender::LINUX };
        let networks: &[Network] = if quick { &[Network::Delay] } else { &Network::ALL };
        let keep: &[u16] = if quick { &[2, 64] } else { &KEEP_EVERY };
        let split = if parts.has("split") { senders } else { &[] };
        let kept = if parts.has("keep-every") { linux } else { &[] };
        let rate = rate.unwrap_or(if quick { QUICK_MBIT } else { MBIT });
        Ok(Self {
            senders: split.to_vec(),
            networks: networks.to_vec(),
            keep_senders: kept.to_vec(),
            keep_every: keep.to_vec(),
            effort: LIMITS.effort(run)?,
            bytes_per_s: bytes_per_s(rate)?,
            cores: Cores::choose(),
        })
    }

    /// Returns the link of round `round`. Its seed gives all compared cases the same losses.
    pub(super) const fn link(&self, round: usize) -> Link {
        Link { bytes_per_s: self.bytes_per_s, seed: 1 + round as u64 }
    }

    /// Returns the transmission time of `frames` full frames on the link, at most 10 ms.
    pub(super) fn time_of_frames(&self, frames: u32) -> Duration {
        let each = Duration::from_secs_f64(SEGMENT_FRAME / self.bytes_per_s as f64);
        (each * frames).min(LONGEST_GATHER)
    }

    /// Returns the link's payload rate in bytes per second, with full segments and timestamps.
    pub(super) fn payload_bytes_per_s(&self) -> f64 {
        self.bytes_per_s as f64 * SEGMENT_PAYLOAD / SEGMENT_FRAME
    }
}

impl Plan {
    /// Returns the facts in the notes on the method.
    pub(super) fn facts(&self, split: &[split::Row], keep: &[keep::Row]) -> Vec<Fact> {
        let ms = |frames| format!("{:.2}", 1e3 * self.time_of_frames(frames).as_secs_f64());
        let all = split.iter().map(|row| &row.figures).chain(keep.iter().map(|row| &row.figures));
        let dropped: u64 = all.map(|figures| figures.dropped).sum();
        let of_keep = [
            ("keep_ms", ms(keep::GATHERED_FRAMES)),
            ("keep_frames", keep::GATHERED_FRAMES.to_string()),
        ];
        let mut facts = vec![
            ("seconds", format!("{:.1}", self.effort.duration.as_secs_f64())),
            ("rounds", self.effort.rounds.to_string()),
            ("mbit", (self.bytes_per_s / 125_000).to_string()),
        ];
        facts.extend((!split.is_empty()).then(|| ("split_ms", ms(split::GATHERED_FRAMES))));
        facts.extend(of_keep.into_iter().filter(|_| !keep.is_empty()));
        facts.extend((dropped > 0).then(|| ("dropped", dropped.to_string())));
        facts
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
/// Default link rate, well below the maximum of the counting sender, a thread with a packet socket on two
/// cores.
const MBIT: u64 = 200;
/// Link rate of the quick version, which an unoptimised build also reaches.
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
