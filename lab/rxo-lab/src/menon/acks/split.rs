//! Runs a receiver behind rxo, which coalesces data, and measures the effect of the receiver's ACKs on
//! senders, with and without ACK splitting.
//!
//! ```text
//!  sender - veth - [rate, loss, delay] - rxo: coalesces, towards a TAP - Linux receiver
//!         <- veth ------------- [delay] - rxo: the receiver's ACKs <---
//! ```

use anyhow::Result;
use rxo::live::defaults;
use rxo_coalesce::Policy;
use rxo_demo::through::{self, Manner, TAP};
use rxo_demo::turns::{Cases, Turns};
use rxo_device::middleware::ImpairmentSettings;
use rxo_testbed::{AckRate, Lab, LabOptions};
use serde::Serialize;

use super::network::Network;
use super::plan::Plan;
use super::sample::{Figures, Frames, Sample};
use super::sender::Sender;
use super::transfer::{Route, watch};

/// The treatment of the receiver's data and ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Treatment {
    /// Nothing is coalesced.
    None,
    /// Data is coalesced; the receiver acknowledges aggregates.
    Coalesced,
    /// Data is coalesced, and the receiver's ACKs are split: one for every two segments.
    Split,
    /// Data is coalesced, and the receiver's ACKs are split: one for each segment, as Linux acknowledges at
    /// the start of a connection.
    #[serde(rename = "split-each")]
    SplitEach,
}

impl Treatment {
    /// Returns the treatments to measure with `sender`. Only a sender that counts ACKs can gain from one ACK
    /// for each segment.
    const fn of(sender: Sender) -> &'static [Self] {
        match sender {
            Sender::Counting => &[Self::None, Self::Coalesced, Self::Split, Self::SplitEach],
            _ => &[Self::None, Self::Coalesced, Self::Split],
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "not coalesced",
            Self::Coalesced => "coalesced",
            Self::Split => "coalesced, split",
            Self::SplitEach => "coalesced, split 1",
        }
    }

    fn manner(self) -> Manner {
        match self {
            Self::None => Manner::with(Policy::none()),
            Self::Coalesced => Manner::with(defaults::live(Policy::linux_gro())),
            Self::Split => Manner { ack_split: Some(SPLIT_EVERY), ..Self::Coalesced.manner() },
            Self::SplitEach => Manner { ack_split: Some(1), ..Self::Coalesced.manner() },
        }
    }
}

/// The results of a sender over one network with one treatment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) sender: Sender,
    pub(super) network: Network,
    pub(super) treatment: Treatment,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    sender: Sender,
    network: Network,
    treatment: Treatment,
}

/// Measures every case in turn. After an interrupt, returns the rows so far.
///
/// # Errors
/// If a network cannot be built or a transfer breaks.
pub(super) fn measured(plan: &Plan, turns: &Turns<'_>) -> Result<Vec<Row>> {
    let cases = cases(plan);
    let samples = turns.measure(
        Cases { cases: &cases, rounds: plan.effort.rounds, rotated: 1 },
        Case::name,
        |case, round| measure(case, plan, round),
        |s: &Sample| {
            format!("{:>6.0} Mbit/s  {:.3} ACKs/segment", s.mbit_per_s, s.acks_per_segment)
        },
    )?;
    Ok(rows(&cases, &samples))
}

impl Case {
    fn name(self) -> String {
        let Self { sender, network, treatment } = self;
        format!("{}, {}, {}", sender.name(), network.name(), treatment.name())
    }
}

/// Returns the cases, ordered so that compared cases are measured close together.
pub(super) fn cases(plan: &Plan) -> Vec<Case> {
    let mut cases = Vec::new();
    for &network in &plan.networks {
        for &sender in &plan.senders {
            let treatments = Treatment::of(sender).iter();
            cases.extend(treatments.map(|&treatment| Case { sender, network, treatment }));
        }
    }
    cases
}

fn rows(cases: &[Case], samples: &[Vec<Sample>]) -> Vec<Row> {
    let figures = cases.iter().zip(samples);
    figures
        .filter_map(|(&Case { sender, network, treatment }, samples)| {
            Some(Row { sender, network, treatment, figures: Figures::of(samples)? })
        })
        .collect()
}

fn measure(case: Case, plan: &Plan, round: usize) -> Result<Sample> {
    let lab = lab(plan, AckRate::Default)?;
    let ways = case.network.impairments(plan.link(round));
    let gather = plan.time_of_frames(GATHERED_FRAMES);
    let data = ImpairmentSettings { gather, ..ways.data };
    let manner = Manner { impair: [data, ways.acks].map(Some), ..case.treatment.manner() };
    let through = through::start(&lab, manner, plan.cores.receiver)?;
    let (from, to) = (lab.peer().interface(Lab::PEER_INTERFACE), lab.host().interface(TAP));
    let before = from.counters()?;
    let cores = [plan.cores.sender, plan.cores.receiver];
    let route = Route { from: &from, to: &to, address: Lab::HOST_ADDRESSES.0, cores };
    let watched = watch(case.sender, &route, plan)?;
    let after = from.counters()?;
    let frames = Frames {
        data: after.sent_frames - before.sent_frames,
        acks: after.received_frames - before.received_frames,
    };
    Ok(Sample::new(plan, &watched, frames, &through.finish()?))
}

/// Makes two hosts whose socket buffers never limit a sender before the link does.
pub(super) fn lab(plan: &Plan, acks: AckRate) -> Result<Lab> {
    let options = LabOptions { peer_core: plan.cores.sender, acks, ..LabOptions::default() };
    let lab = Lab::through_with(options)?;
    for namespace in [lab.peer(), lab.host()] {
        namespace.set_sysctl("net.ipv4.tcp_rmem", BUFFERS)?;
        namespace.set_sysctl("net.ipv4.tcp_wmem", BUFFERS)?;
    }
    Ok(lab)
}

/// Segments per ACK after splitting: RFC 9293 requires an ACK for every second full segment.
const SPLIT_EVERY: u16 = 2;
/// Number of frames that the network releases together, as a card with interrupt moderation does: the paper's
/// aggregation limit.
pub(super) const GATHERED_FRAMES: u32 = 20;
/// Minimum, default and maximum of a socket buffer, in bytes: more than the link and its queue ever hold.
const BUFFERS: &str = "4096 16777216 16777216";
