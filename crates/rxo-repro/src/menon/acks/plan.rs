//! What the flags of `rxo repro menon --part acks` mean.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_console::numbers::parse_time;
use rxo_console::paths::for_folder;

use super::network::{Link, Network};
use super::sender::Sender;
use crate::flags::{MenonExperiment, MenonFlags};
use crate::machine::Cores;

/// What is to be measured.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Senders of the first experiment; none leaves it out.
    pub(super) senders: Vec<Sender>,
    pub(super) networks: Vec<Network>,
    /// Senders of the second experiment; none leaves it out.
    pub(super) keep_senders: Vec<Sender>,
    /// What is tried in it.
    pub(super) keep_every: Vec<u16>,
    pub(super) rounds: usize,
    /// How long a connection sends.
    pub(super) duration: Duration,
    pub(super) bytes_per_s: u64,
    pub(super) cores: Cores,
    pub(super) out: PathBuf,
    pub(super) json: bool,
}

impl Plan {
    /// The plan for what was typed.
    ///
    /// # Errors
    /// When a number or a time cannot be; the message says what would be accepted.
    pub(super) fn from_flags(flags: &MenonFlags) -> Result<Self> {
        let wanted = |part| flags.only.is_empty() || flags.only.contains(&part);
        let quick = flags.quick;
        let senders: &[Sender] =
            if quick { &[Sender::Counting, Sender::Cubic] } else { &Sender::ALL };
        let linux: &[Sender] = if quick { &[Sender::Cubic] } else { &Sender::LINUX };
        let networks: &[Network] = if quick { &[Network::Delay] } else { &Network::ALL };
        let keep: &[u16] = if quick { &[2, 64] } else { &KEEP_EVERY };
        let split = if wanted(MenonExperiment::Split) { senders } else { &[] };
        let kept = if wanted(MenonExperiment::KeepEvery) { linux } else { &[] };
        let rate = flags.rate.unwrap_or(if quick { QUICK_MBIT } else { MBIT });
        Ok(Self {
            senders: split.to_vec(),
            networks: networks.to_vec(),
            keep_senders: kept.to_vec(),
            keep_every: keep.to_vec(),
            rounds: rounds(flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS }))?,
            duration: duration(flags.seconds.as_deref(), quick)?,
            bytes_per_s: bytes_per_s(rate)?,
            cores: Cores::choose(),
            out: for_folder("--out", &flags.out)?,
            json: flags.json,
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

fn rounds(rounds: usize) -> Result<usize> {
    if MOST_ROUNDS.contains(&rounds) {
        return Ok(rounds);
    }
    Err(usage(format!("--rounds {rounds}: choose 1 to 100")))
}

fn duration(seconds: Option<&str>, quick: bool) -> Result<Duration> {
    let Some(text) = seconds else { return Ok(if quick { QUICK_DURATION } else { DURATION }) };
    parse_time(text)
        .filter(|time| DURATIONS.contains(time))
        .ok_or_else(|| usage(format!("--seconds {text}: choose 0.3s to 60s")))
}

fn bytes_per_s(mbit: u64) -> Result<u64> {
    if MBITS.contains(&mbit) {
        return Ok(mbit * 125_000);
    }
    Err(usage(format!("--rate {mbit}: choose 10 to 10000 Mbit/s")))
}

const KEEP_EVERY: [u16; 6] = [2, 4, 8, 16, 32, 64];
const MOST_ROUNDS: RangeInclusive<usize> = 1..=100;
const ROUNDS: usize = 2;
const DURATION: Duration = Duration::from_secs(4);
const QUICK_DURATION: Duration = Duration::from_millis(600);
const DURATIONS: RangeInclusive<Duration> = Duration::from_millis(300)..=Duration::from_secs(60);
const MBITS: RangeInclusive<u64> = 10..=10_000;
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

    fn flags() -> MenonFlags {
        MenonFlags { quick: true, ..MenonFlags::default() }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let rows = [
            (MenonFlags { rounds: Some(0), ..flags() }, "--rounds 0: choose 1 to 100"),
            (
                MenonFlags { seconds: Some("61s".into()), ..flags() },
                "--seconds 61s: choose 0.3s to 60s",
            ),
            (MenonFlags { rate: Some(1), ..flags() }, "--rate 1: choose 10 to 10000 Mbit/s"),
        ];
        for (flags, message) in rows {
            assert_eq!(Plan::from_flags(&flags).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn one_experiment_leaves_the_other_out() {
        let only = |part| Plan::from_flags(&MenonFlags { only: vec![part], ..flags() }).unwrap();
        assert!(only(MenonExperiment::Split).keep_senders.is_empty());
        assert!(only(MenonExperiment::KeepEvery).senders.is_empty());
        let both = Plan::from_flags(&flags()).unwrap();
        assert!(!both.senders.is_empty() && !both.keep_senders.is_empty());
    }
}
