//! `rxo-lab menon acks`: measures the effect of coalescing on senders that count ACKs (sections 3.4 and 4).
//!
//! Two experiments in private networks; the project's middleware adds delay and loss and limits the rate. In the
//! first, a sender (Linux Reno, CUBIC, BBR, or our own that counts ACKs) sends to a Linux receiver behind rxo,
//! which coalesces no data, coalesces it, or also splits the receiver's ACKs. In the second, a Linux sender is
//! behind rxo, which aggregates the pure ACKs to that sender, with different limits.
//!
//! [`connection`] runs and observes one connection, [`growth`] finds the time of full rate, and [`effect`] compares
//! the rows.

mod connection;
mod effect;
mod growth;

use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_demo::machine::Cores;
use serde::Serialize;

use self::connection::{Behind, Network, observe};
use crate::claim::Fact;
use crate::flags::{AcksFlags, Part};
use crate::limits::{Effort, Limits};
use crate::study::{Rows, Study, Table, by_fields, rows_of};

/// Receivers that coalesce data, and their ACKs split again; senders whose pure ACKs are aggregated.
pub(crate) const PARTS: &[Part] = &[Part::timed("split"), Part::timed("keep-every")];

/// A sender with its congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Sender {
    /// Our own sender: RFC 5681 without byte counting, initial window of ten segments.
    Counting,
    Reno,
    Cubic,
    Bbr,
}

impl Sender {
    const ALL: [Self; 4] = [Self::Counting, Self::Reno, Self::Cubic, Self::Bbr];

    /// Returns the kernel's name of the congestion control.
    const fn name(self) -> &'static str {
        match self {
            Self::Counting => "counting",
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// The treatment of a receiver's data and ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Treatment {
    /// Nothing is coalesced.
    None,
    /// Data is coalesced; the receiver acknowledges aggregates.
    Coalesced,
    /// Data is coalesced, and the receiver's ACKs are split: one for every two segments, as RFC 9293 requires.
    Split,
    /// Data is coalesced, and the receiver's ACKs are split: one for each segment, as Linux acknowledges at
    /// the start of a connection.
    SplitEach,
}

#[derive(Clone, Copy, Serialize)]
struct SplitCase {
    sender: Sender,
    network: Network,
    treatment: Treatment,
}

#[derive(Clone, Copy, Serialize)]
struct KeepCase {
    sender: Sender,
    /// rxo delivers at least every `keep_every`-th ACK; `None` disables aggregation.
    keep_every: Option<u16>,
}

/// The conditions of a measurement.
#[derive(Clone, Copy, Debug)]
struct Setting {
    effort: Effort,
    bytes_per_s: u64,
    cores: Cores,
}

/// Makes the experiment from the flags.
pub(crate) fn study(AcksFlags { run, rate }: &AcksFlags) -> Result<Study> {
    let (parts, quick) = (run.chosen(PARTS)?, run.is_quick());
    let bytes_per_s = bytes_per_s(rate.unwrap_or(if quick { QUICK_MBIT } else { MBIT }))?;
    let setting = Setting { effort: LIMITS.effort(run)?, bytes_per_s, cores: Cores::choose() };
    let rounds = setting.effort.rounds;
    let split = if parts.has("split") { split_cases(quick) } else { Vec::new() };
    let keep = if parts.has("keep-every") { keep_cases(quick) } else { Vec::new() };
    let split = Table::timed(
        ("split", split),
        rounds,
        by_fields,
        move |case: SplitCase, round| {
            observe(case.sender, case.network, Behind::Receiver(case.treatment), (setting, round))
        },
        ("acks_per_segment", "ACKs/segment"),
    );
    let keep = Table::timed(
        ("keep", keep),
        rounds,
        by_fields,
        move |case: KeepCase, round| {
            observe(case.sender, Network::Delay, Behind::Sender(case.keep_every), (setting, round))
        },
        ("per_delivery", "ACKs/delivery"),
    );
    Ok(Study {
        derive: Box::new(move |rows| effect::derive(rows, setting)),
        facts: Box::new(move |rows| setting.facts(rows)),
        ..Study::of("menon-acks", vec![Box::new(split), Box::new(keep)])
    })
}

/// Returns the cases of receivers, ordered so that compared cases are measured close together. Only a sender that
/// counts ACKs can gain from one ACK for each segment.
fn split_cases(quick: bool) -> Vec<SplitCase> {
    let senders: &[Sender] = if quick { &[Sender::Counting, Sender::Cubic] } else { &Sender::ALL };
    let networks: &[Network] = if quick { &[Network::Delay] } else { &Network::ALL };
    let all = [Treatment::None, Treatment::Coalesced, Treatment::Split, Treatment::SplitEach];
    let treatments = |sender| if sender == Sender::Counting { &all[..] } else { &all[..3] };
    let of = |network, sender| {
        treatments(sender).iter().map(move |&treatment| SplitCase { sender, network, treatment })
    };
    networks
        .iter()
        .flat_map(|&network| senders.iter().flat_map(move |&sender| of(network, sender)))
        .collect()
}

fn keep_cases(quick: bool) -> Vec<KeepCase> {
    let senders: &[Sender] = if quick { &[Sender::Cubic] } else { &Sender::ALL[1..] };
    let settings: &[u16] = if quick { &[2, 64] } else { &[2, 4, 8, 16, 32, 64] };
    let settings = [None].into_iter().chain(settings.iter().copied().map(Some));
    let of = |&sender| settings.clone().map(move |keep_every| KeepCase { sender, keep_every });
    senders.iter().flat_map(of).collect()
}

impl Setting {
    /// Returns the transmission time of `frames` full frames on the link, at most 10 ms.
    fn time_of_frames(&self, frames: u32) -> Duration {
        let each = Duration::from_secs_f64(SEGMENT_FRAME / self.bytes_per_s as f64);
        (each * frames).min(LONGEST_GATHER)
    }

    /// Returns the link's payload rate in bytes per second, with full segments and timestamps.
    fn payload_bytes_per_s(&self) -> f64 {
        self.bytes_per_s as f64 * SEGMENT_BYTES / SEGMENT_FRAME
    }

    fn facts(&self, rows: &Rows) -> Vec<Fact> {
        let ms = |frames| format!("{:.2}", 1e3 * self.time_of_frames(frames).as_secs_f64());
        let [split, keep] = ["split", "keep"].map(|name| rows_of(rows, name));
        let dropped: u64 = split.iter().chain(keep).filter_map(|row| row["dropped"].as_u64()).sum();
        let of_keep = [
            ("keep_ms", ms(connection::KEEP_FRAMES)),
            ("keep_frames", connection::KEEP_FRAMES.to_string()),
        ];
        let mut facts = vec![
            ("seconds", format!("{:.1}", self.effort.duration.as_secs_f64())),
            ("rounds", self.effort.rounds.to_string()),
            ("mbit", (self.bytes_per_s / 125_000).to_string()),
        ];
        facts.extend((!split.is_empty()).then(|| ("split_ms", ms(connection::SPLIT_FRAMES))));
        facts.extend(of_keep.into_iter().filter(|_| !keep.is_empty()));
        facts.extend((dropped > 0).then(|| ("dropped", dropped.to_string())));
        facts
    }
}

fn bytes_per_s(mbit: u64) -> Result<u64> {
    match (10..=10_000).contains(&mbit) {
        true => Ok(mbit * 125_000),
        false => Err(usage(format!("--rate {mbit}: choose 10 to 10000 Mbit/s"))),
    }
}

const LIMITS: Limits = Limits {
    rounds: [2, 1],
    most_rounds: 100,
    durations: [Duration::from_secs(4), Duration::from_millis(600)],
    shortest: Duration::from_millis(300),
};
/// Default link rate, well below the maximum of the counting sender, a thread with a packet socket on two
/// cores.
const MBIT: u64 = 200;
/// Link rate of the quick version, which an unoptimised build also reaches.
const QUICK_MBIT: u64 = 50;
const LONGEST_GATHER: Duration = Duration::from_millis(10);
/// Payload bytes of a full segment, and bytes of its frame.
const SEGMENT_BYTES: f64 = 1_448.0;
const SEGMENT_FRAME: f64 = 1_514.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    fn steps(line: &str) -> Result<usize> {
        Ok(study(&typed::<AcksFlags>(line)?)?.steps())
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let rows = [
            ("--rounds 0", "--rounds 0: choose 1 to 100"),
            ("--seconds 61s", "--seconds 61s: choose 0.3s to 60s"),
            ("--rate 1", "--rate 1: choose 10 to 10000 Mbit/s"),
        ];
        for (flags, message) in rows {
            assert_eq!(steps(flags).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn one_experiment_leaves_the_other_out() {
        for (line, count) in [
            ("", 2 * (3 * 13 + 3 * 7)),
            ("--only split", 2 * 3 * 13),
            ("--only keep-every", 2 * 3 * 7),
            ("--quick", 4 + 3 + 3),
        ] {
            assert_eq!(steps(line).unwrap(), count, "{line}");
        }
    }
}
