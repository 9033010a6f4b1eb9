//! `rxo demo --reverse`: the sender's side. A bulk sender in a host whose peer acknowledges often,
//! by the kernel alone, through rxo, and through rxo with `--ack-aggregate`, side by side.
//!
//! What is measured stands in [`sending`](crate::sending); here it becomes a [`report`] with its
//! [`sentence`].

mod report;
mod sentence;

use anyhow::{Context, Result, bail};
use rxo_coalesce::{Hold, Policy};
use rxo_console::fault::usage;
use rxo_console::numbers::ratio;
use rxo_console::output;
use rxo_lab::AckRate;

use self::report::Report;
use super::plan::Plan;
use crate::flags::DemoFlags;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::sending::{Row, Sample, Setup, Way, measure};

/// Measures, and prints the result.
///
/// # Errors
/// When private networks cannot be made, a transfer breaks, or bytes arrived that were not sent.
pub(super) fn command(plan: &Plan, peer: Peer, privilege: &'static str, json: bool) -> Result<()> {
    let setup = setup(plan, peer);
    let rows = measured(plan.rounds, &setup, json)?;
    let report = Report::new(rows, Machine::read(privilege), plan.rounds, &setup);
    if json {
        output::json_document(&report)?;
    } else {
        output::text(&report.text())?;
    }
    if !report.is_intact() {
        bail!("bytes arrived that were not sent; please report this with the table above");
    }
    Ok(())
}

/// What only the sender's side has flags for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    acks: AckRate,
    hold: Hold,
}

impl Peer {
    /// What was typed.
    ///
    /// # Errors
    /// When a value cannot be; the message says what would be accepted.
    pub(super) fn from_flags(flags: &DemoFlags) -> Result<Self> {
        let acks = ack_rate(&flags.peer_acks)?;
        Ok(Self { acks, hold: hold(&flags.hold)? })
    }
}

/// How long rxo holds ACKs.
///
/// # Errors
/// When the text is no hold rule; the message says what would be accepted.
fn hold(text: &str) -> Result<Hold> {
    let mut policy = Policy::none();
    let set = policy.set("hold", text);
    set.map_err(|error| usage(format!("--hold {text} cannot be: {}", error.accepted)))?;
    Ok(policy.hold)
}

/// How often the peer is to acknowledge.
///
/// # Errors
/// When it cannot.
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

fn setup(plan: &Plan, Peer { acks, hold }: Peer) -> Setup {
    let Plan { connections, bulk, warm_up, cores, .. } = *plan;
    Setup { connections, bulk, warm_up, cores, acks, hold }
}

/// All rounds, as rows.
fn measured(rounds: usize, setup: &Setup, json: bool) -> Result<Vec<Row>> {
    let progress = Progress::new(rounds * Way::ALL.len(), json);
    let mut samples: [Vec<Sample>; Way::ALL.len()] = Default::default();
    for round in 0..rounds {
        for index in 0..Way::ALL.len() {
            let way = Way::in_round(round, index);
            progress.begin(&format!("round {}: {}", round + 1, way.name()));
            let sample = measure(way, setup)
                .with_context(|| format!("the way {} could not be measured", way.name()))?;
            progress.end(&line(round, way, &sample));
            samples[way as usize].push(sample);
        }
    }
    progress.finish();
    let rows = Way::ALL.iter().zip(&samples);
    Ok(rows.filter_map(|(&way, samples)| Row::of(way, setup.connections, samples)).collect())
}

fn line(round: usize, way: Way, sample: &Sample) -> String {
    format!(
        "round {}  {:<15}  {:>5.1} Gbit/s  {:>5.2} CPU s/GB  {:>5.2} ACKs a segment, {:.0} a delivery",
        round + 1,
        way.name(),
        sample.gbit_per_s,
        sample.cpu.total(),
        sample.acks_per_segment(),
        ratio(sample.acks as f64, sample.ack_deliveries as f64)
    )
}

/// More do not fit into what a kernel coalesces with segments of 1,500 bytes.
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
