//! `rxo demo --reverse`: compares three ways in which frequent ACKs reach a bulk sender: through the kernel
//! alone, through rxo, and through rxo with `--ack-aggregate`.
//!
//! The measurement is in [`sending`](crate::sending); this module makes the [`findings`] and their
//! [`sentence`].

mod findings;
mod sentence;

use std::time::Duration;

use anyhow::Result;
use rxo_coalesce::{Hold, Policy};
use rxo_console::fault::usage;
use rxo_console::numbers::ratio;
use rxo_testbed::AckRate;

use self::findings::ReverseFindings;
use crate::experiment::{Experiment, Output};
use crate::flags::DemoFlags;
use crate::sending::{Row, Sample, Setup, Way, measure};
use crate::turns::{Cases, Turns};

/// The work of `rxo demo --reverse`: the number of rounds, and the settings of each transfer.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    rounds: usize,
    setup: Setup,
    output: Output,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a value is invalid; the message names the accepted values.
    pub(crate) fn from_flags(flags: &DemoFlags) -> Result<Self> {
        let super::Plan { connections, rounds, bulk, warm_up, cores, output, .. } =
            super::Plan::from_flags(flags)?;
        let (acks, hold) = (ack_rate(&flags.peer_acks)?, hold(&flags.hold)?);
        let moderation = Duration::ZERO;
        let setup = Setup { connections, bulk, warm_up, cores, acks, hold, moderation };
        Ok(Self { rounds, setup, output })
    }
}

impl Experiment for Plan {
    type Findings = ReverseFindings;

    fn steps(&self) -> Result<usize> {
        Ok(self.rounds * Way::ALL.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<ReverseFindings> {
        let cases = Cases { cases: &Way::ALL, rounds: self.rounds, rotated: Way::ALL.len() };
        let name = |way: Way| way.name().to_owned();
        let samples = turns.measure(cases, name, |way, _| measure(way, &self.setup), line)?;
        let rows = Way::ALL.iter().zip(&samples);
        let rows = rows.filter_map(|(&way, samples)| Row::of(way, self.setup.connections, samples));
        Ok(ReverseFindings::new(rows.collect(), self))
    }

    fn notes(&self, found: &ReverseFindings) -> Vec<String> {
        vec![found.legend()]
    }

    fn output(&self) -> &Output {
        &self.output
    }
}

/// Parses the value of `--hold`: the rule that decides how long rxo holds ACKs.
///
/// # Errors
/// If `text` is not a hold rule; the message describes valid values.
fn hold(text: &str) -> Result<Hold> {
    let mut policy = Policy::none();
    let set = policy.set("hold", text);
    set.map_err(|error| usage(format!("--hold {text} is invalid: {}", error.accepted)))?;
    Ok(policy.hold)
}

/// Parses the value of `--peer-acks`: the rate at which the peer acknowledges.
///
/// # Errors
/// If `text` is not such a rate; the message describes valid values.
fn ack_rate(text: &str) -> Result<AckRate> {
    let groups = text.parse().ok().filter(|segments| GROUPS.contains(segments));
    match (text, groups) {
        ("each", _) => Ok(AckRate::EachSegment),
        ("linux", _) => Ok(AckRate::Default),
        (_, Some(segments)) => Ok(AckRate::Groups(segments)),
        _ => Err(usage(format!(
            "--peer-acks {text}: choose each (segment), linux (as it does by itself) or every 2 to 40 \
             segments"
        ))),
    }
}

fn line(sample: &Sample) -> String {
    format!(
        "{:>5.1} Gbit/s  {:>5.2} CPU s/GB  {:>5.2} ACKs a segment, {:.0} a delivery",
        sample.gbit_per_s,
        sample.cpu.total(),
        sample.acks_per_segment(),
        ratio(sample.acks as f64, sample.ack_deliveries as f64)
    )
}

/// Numbers of segments per ACK that `--peer-acks` accepts. With a larger number, an ACK would acknowledge more segments
/// of 1,500 bytes than a kernel coalesces.
const GROUPS: std::ops::RangeInclusive<u16> = 2..=40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_or_refused_with_what_can_be() {
        let rows = [
            ("each", AckRate::EachSegment),
            ("linux", AckRate::Default),
            ("2", AckRate::Groups(2)),
            ("40", AckRate::Groups(40)),
        ];
        for (text, rate) in rows {
            assert_eq!(ack_rate(text).unwrap(), rate);
        }
        for text in ["", "1", "41", "often"] {
            let error = ack_rate(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--peer-acks {text}: choose each")), "{error}");
        }
    }
}
