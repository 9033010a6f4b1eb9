//! Runs a Linux sender behind rxo, which aggregates the ACKs to that sender, and finds how many ACKs one
//! delivery may replace without harm.
//!
//! ```text
//!  Linux sender - a TAP - rxo ---------------- [rate, delay] - veth - receiver
//!               <- a TAP - rxo: aggregates ACKs - [delay] <- veth - its ACKs
//! ```

use anyhow::Result;
use rxo::live::defaults;
use rxo_coalesce::{Policy, PureAckRule};
use rxo_demo::through::{self, Manner, TAP};
use rxo_demo::turns::{Cases, Turns};
use rxo_device::middleware::ImpairmentSettings;
use rxo_testbed::{AckRate, Lab};
use serde::Serialize;

use super::network::{Network, ROUND_TRIP};
use super::plan::Plan;
use super::sample::{Figures, Frames, Sample};
use super::sender::Sender;
use super::split::lab;
use super::transfer::{Route, watch};

/// The results of a sender with one setting.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) sender: Sender,
    /// rxo delivers at least every `keep_every`-th ACK; `None` disables aggregation.
    pub(super) keep_every: Option<u16>,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

pub(super) type Case = (Sender, Option<u16>);

/// Measures every case in turn. After an interrupt, returns the rows so far.
///
/// # Errors
/// If a network cannot be built or a transfer breaks.
pub(super) fn measured(plan: &Plan, turns: &Turns<'_>) -> Result<Vec<Row>> {
    let cases = cases(plan);
    let samples = turns.measure(
        Cases { cases: &cases, rounds: plan.effort.rounds, rotated: 1 },
        |(sender, setting)| format!("{}, keep_every {}", sender.name(), shown(setting)),
        |case, round| measure(case, plan, round),
        |s: &Sample| format!("{:>6.0} Mbit/s  {:.1} ACKs/delivery", s.mbit_per_s, s.per_delivery),
    )?;
    Ok(rows(&cases, &samples))
}

/// Returns the setting as text; "off" for no aggregation.
pub(super) fn shown(keep_every: Option<u16>) -> String {
    keep_every.map_or("off".to_owned(), |count| count.to_string())
}

pub(super) fn cases(plan: &Plan) -> Vec<Case> {
    let settings = [None].into_iter().chain(plan.keep_every.iter().copied().map(Some));
    let of = |&sender: &Sender| settings.clone().map(move |setting| (sender, setting));
    plan.keep_senders.iter().flat_map(of).collect()
}

fn rows(cases: &[Case], samples: &[Vec<Sample>]) -> Vec<Row> {
    let figures = cases.iter().zip(samples);
    figures
        .filter_map(|(&(sender, keep_every), samples)| {
            Some(Row { sender, keep_every, figures: Figures::of(samples)? })
        })
        .collect()
}

/// Returns the Linux GRO policy with aggregation of pure ACKs; without a setting, the policy that coalesces
/// nothing.
fn policy(keep_every: Option<u16>) -> Policy {
    let policy = defaults::live(Policy::linux_gro());
    keep_every.map_or(Policy::none(), |keep_every| Policy {
        pure_acks: PureAckRule::Single,
        keep_every,
        max_acks: policy.max_acks.max(keep_every),
        ..policy
    })
}

fn measure((sender, keep_every): Case, plan: &Plan, round: usize) -> Result<Sample> {
    let lab = lab(plan, AckRate::EachSegment)?;
    let ways = Network::Delay.impairments(plan.link(round));
    let gather = plan.time_of_frames(GATHERED_FRAMES);
    let acks = ImpairmentSettings { gather, ..ways.acks };
    let manner = Manner { impair: [acks, ways.data].map(Some), ..Manner::with(policy(keep_every)) };
    let through = through::start(&lab, manner, plan.cores.receiver)?;
    let (from, to) = (lab.host().interface(TAP), lab.peer().interface(Lab::PEER_INTERFACE));
    let before = to.counters()?;
    // The sender runs on the host behind rxo, on that host's core.
    let cores = [plan.cores.receiver, plan.cores.sender];
    let route = Route { from: &from, to: &to, address: Lab::PEER_ADDRESSES.0, cores };
    let watched = watch(sender, &route, plan)?;
    let data = to.counters()?.received_frames - before.received_frames;
    let reading = through.finish()?;
    let frames = Frames { data, acks: reading.host_out.packets };
    Ok(Sample::new(plan, &watched, frames, &reading))
}

/// Returns the largest setting up to which no tried setting harms a sender. `None` if the smallest one harms,
/// or none was measured.
pub(super) fn choice(rows: &[Row]) -> Option<u16> {
    let mut tried: Vec<u16> = rows.iter().filter_map(|row| row.keep_every).collect();
    tried.sort_unstable();
    tried.dedup();
    let harmless = tried.into_iter().take_while(|&setting| {
        let with = rows.iter().filter(|row| row.keep_every == Some(setting));
        with.clone().all(|row| !harms(row, rows))
    });
    harmless.last()
}

/// Returns `true` if a sender is slower with this setting than without aggregation, by more than the
/// variation between measurements.
pub(super) fn harms(row: &Row, rows: &[Row]) -> bool {
    let is_base = |other: &&Row| other.sender == row.sender && other.keep_every.is_none();
    let Some(base) = rows.iter().find(is_base) else { return false };
    let (with, without) = (&row.figures, &base.figures);
    let is_slower = with.mbit_per_s.median < LEAST_SHARE * without.mbit_per_s.median;
    let is_later = match (with.always_full_ms(), without.always_full_ms()) {
        (Some(with), Some(without)) => with > MOST_TIMES * without + ROUND_TRIP.as_secs_f64() * 1e3,
        (None, Some(_)) => true,
        (_, None) => false,
    };
    is_slower || is_later
}

/// Number of frames whose ACKs arrive together, more than the largest setting. With longer gaps, CUBIC would
/// take a gap of 2 ms between ACKs for the end of a train and leave slow start by chance.
pub(super) const GATHERED_FRAMES: u32 = 80;
const LEAST_SHARE: f64 = 0.95;
const MOST_TIMES: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::super::sample::tests::sample;
    use super::*;

    fn row(keep_every: Option<u16>, mbit_per_s: f64, full_ms: Option<f64>) -> Row {
        let figures = Figures::of(&[sample(mbit_per_s, full_ms)]).unwrap();
        Row { sender: Sender::Cubic, keep_every, figures }
    }

    #[test]
    fn the_largest_that_harms_nobody_is_chosen() {
        let base = row(None, 900.0, Some(200.0));
        let good = |count| row(Some(count), 890.0, Some(235.0));
        let late = |count| row(Some(count), 890.0, Some(300.0));
        let slow = |count| row(Some(count), 800.0, Some(200.0));
        let never = |count| row(Some(count), 890.0, None);
        let rows = |others: &[Row]| [std::slice::from_ref(&base), others].concat();
        assert_eq!(choice(&rows(&[good(2), good(4), good(8)])), Some(8));
        assert_eq!(choice(&rows(&[good(2), late(4), good(8)])), Some(2), "a fluke is no proof");
        assert_eq!(choice(&rows(&[good(2), slow(4)])), Some(2));
        assert_eq!(choice(&rows(&[good(2), never(4)])), Some(2));
        assert_eq!(choice(&rows(&[late(2), good(4)])), None);
        assert_eq!(choice(&rows(&[])), None);
    }

    #[test]
    fn one_sender_that_suffers_is_enough() {
        let mut rows = vec![row(None, 900.0, None), row(Some(2), 900.0, None)];
        let of = |row: &Row| Row { sender: Sender::Reno, ..row.clone() };
        rows.push(of(&rows[0]));
        assert_eq!(choice(&rows), Some(2));
        rows.push(of(&row(Some(2), 100.0, None)));
        assert_eq!(choice(&rows), None);
    }
}
