//! The plan of `rxo-lab xen`, from its flags.

use anyhow::Result;
use rxo_demo::experiment::Output;

use super::paper;
use super::system::System;
use super::virtual_time::Reader;
use crate::flags::{XenFlags, XenPart};

/// A system, and the frames of its polls.
pub(super) type Case = (System, f64);

/// A system, the frames of its polls, and how far its guest has read, on a faster link.
pub(super) type PacedCase = (System, f64, Reader);

/// A system in front of a guest whose instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GuestCase {
    pub(super) system: System,
    /// The most frames of a poll.
    pub(super) frames_a_poll: f64,
    /// True if the guest's kernel coalesces, too.
    pub(super) gro: bool,
}

/// A system in front of so many guests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SeveralCase {
    pub(super) system: System,
    pub(super) guests: usize,
}

/// The plan: everything that is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) rates: Vec<Case>,
    pub(super) paced: Vec<PacedCase>,
    pub(super) exchanges: Vec<System>,
    pub(super) costs: Vec<Case>,
    pub(super) guests: Vec<GuestCase>,
    /// Bytes of the longer transfer to a guest.
    pub(super) guest_bytes: usize,
    /// Systems on the paper's machine whose rate is measured.
    pub(super) machines: Vec<System>,
    /// How often each of them is.
    pub(super) rounds: usize,
    /// Bytes of the longer of their transfers.
    pub(super) machine_bytes: usize,
    /// Rounds of transactions with live guests; empty for none.
    pub(super) requests: Vec<usize>,
    /// How often those guests are booted.
    pub(super) boots: usize,
    /// Transactions of each system in a round.
    pub(super) transactions: usize,
    pub(super) several: Vec<SeveralCase>,
    /// Bytes that each of several guests receives.
    pub(super) several_bytes: usize,
    /// Frames on virtual time.
    pub(super) frames: usize,
    /// Frames under callgrind.
    pub(super) counted_frames: usize,
    pub(super) output: Output,
}

impl Plan {
    /// The plan for what was typed.
    ///
    /// # Errors
    /// If `--out` cannot be a directory.
    pub(crate) fn from_flags(flags: &XenFlags) -> Result<Self> {
        let XenFlags { only, quick, json, out, .. } = flags;
        let wanted = |part| only.is_empty() || only.contains(&part);
        let each = |systems: &'static [System], polls: &'static [f64]| {
            let of = move |system| polls.iter().map(move |frames| (system, *frames));
            systems.iter().copied().flat_map(of)
        };
        let exchanges = System::DOMAINS.into_iter().filter(|_| wanted(XenPart::Latency));
        let counts = wanted(XenPart::Cost) || wanted(XenPart::Throughput);
        let live = wanted(XenPart::Guests);
        Ok(Self {
            rates: each(&System::SWEPT, &POLLS).filter(|_| wanted(XenPart::Rate)).collect(),
            paced: if wanted(XenPart::Rate) { paced() } else { Vec::new() },
            exchanges: exchanges.collect(),
            costs: if counts {
                let polls = if *quick { &QUICK_POLLS[..] } else { &COUNTED_POLLS };
                each(&System::COUNTED, polls).collect()
            } else {
                Vec::new()
            },
            guests: if counts { guests(*quick) } else { Vec::new() },
            guest_bytes: if *quick { QUICK_BYTES } else { BYTES },
            machines: System::RECEIVERS
                .into_iter()
                .filter(|_| wanted(XenPart::Throughput))
                .collect(),
            rounds: if *quick { 1 } else { ROUNDS },
            machine_bytes: if *quick { QUICK_MACHINE_BYTES } else { MACHINE_BYTES },
            requests: if live { vec![REQUEST_ROUNDS] } else { Vec::new() },
            boots: if *quick { 1 } else { BOOTS },
            transactions: if *quick { QUICK_TRANSACTIONS } else { TRANSACTIONS },
            several: if live { several(*quick) } else { Vec::new() },
            several_bytes: if *quick { QUICK_BYTES } else { SEVERAL_BYTES },
            frames: FRAMES,
            counted_frames: if *quick { QUICK_FRAMES } else { COUNTED_FRAMES },
            output: Output::drawn(*json, out)?,
        })
    }

    /// Gets programs and a kernel for guests, which may need the network that a private one lacks. A failure is reported
    /// when a guest is to start.
    pub(crate) fn prepare(&self) {
        if self.needs_guests() {
            _ = crate::guests::image();
        }
    }

    pub(super) fn needs_guests(&self) -> bool {
        let Self { guests, machines, requests, several, .. } = self;
        !(guests.is_empty() && machines.is_empty() && requests.is_empty() && several.is_empty())
    }
}

/// Systems on a link that is ten times as fast.
fn paced() -> Vec<PacedCase> {
    let each = |(system, guest)| PACED_POLLS.map(|frames| (system, frames, guest));
    LOADS.into_iter().flat_map(each).collect()
}

/// Guests whose instructions are counted. Their kernel coalesces as it does today, and at the paper's frames a
/// poll also does not, as the paper's did not. Last is the guest that has the card itself, at the paper's frames a poll only.
fn guests(quick: bool) -> Vec<GuestCase> {
    let of_today = if quick { &QUICK_SYSTEMS[..] } else { &System::SWEPT };
    let polls = if quick { &QUICK_POLLS[..] } else { &COUNTED_POLLS };
    let each = |systems: &'static [System], frames_a_poll, gro| {
        systems.iter().map(move |system| GuestCase { system: *system, frames_a_poll, gro })
    };
    let today = polls.iter().flat_map(|frames| each(of_today, *frames, true));
    let linux = |gro| each(&[System::Linux], paper::FRAMES_A_POLL, gro);
    let as_then = each(&System::DOMAINS, paper::FRAMES_A_POLL, false).chain(linux(false));
    today.chain(linux(true)).chain(as_then.filter(|_| !quick)).collect()
}

/// Several guests at once.
fn several(quick: bool) -> Vec<SeveralCase> {
    let case = |system| move |guests| SeveralCase { system, guests };
    if quick {
        return vec![case(System::Auto)(2)];
    }
    SEVERAL_SYSTEMS.into_iter().flat_map(|system| SEVERAL.map(case(system))).collect()
}

/// Frames a poll; the paper's among them.
const POLLS: [f64; 12] = [
    1.0,
    2.0,
    paper::FRAMES_A_POLL,
    paper::EARLIER_FRAMES_A_POLL,
    3.0,
    4.0,
    6.0,
    8.0,
    12.0,
    16.0,
    24.0,
    32.0,
];
/// On the faster link. Two frames at least: one leaves alone whatever a guest has read.
const PACED_POLLS: [f64; 4] = [2.0, paper::FRAMES_A_POLL, 4.0, 8.0];
/// What is compared on it.
pub(super) const LOADS: [(System, Reader); 3] =
    [(System::Lro, Reader::Busy), (System::Auto, Reader::Busy), (System::Auto, Reader::Idle)];
pub(super) const COUNTED_POLLS: [f64; 6] = [1.0, paper::FRAMES_A_POLL, 4.0, 8.0, 16.0, FULL_LOAD];
const QUICK_POLLS: [f64; 1] = [paper::FRAMES_A_POLL];
/// A poll at full load.
pub(super) const FULL_LOAD: f64 = 32.0;
const QUICK_SYSTEMS: [System; 2] = [System::Xen, System::BoDa];
/// The numbers of guests that run at once.
const SEVERAL: [usize; 3] = [1, 2, 4];
const SEVERAL_SYSTEMS: [System; 3] = [System::Xen, System::Lro, System::Auto];
/// Rates of each system.
const ROUNDS: usize = 3;
/// Rounds with the same guests.
const REQUEST_ROUNDS: usize = 3;
/// With the rounds an odd number, so that there is one in the middle.
const BOOTS: usize = 7;
const TRANSACTIONS: usize = 200;
const QUICK_TRANSACTIONS: usize = 50;
const BYTES: usize = 16 << 20;
const QUICK_BYTES: usize = 2 << 20;
const MACHINE_BYTES: usize = 64 << 20;
const QUICK_MACHINE_BYTES: usize = 8 << 20;
const SEVERAL_BYTES: usize = 4 << 20;
const FRAMES: usize = 20_000;
const COUNTED_FRAMES: usize = 4_000;
const QUICK_FRAMES: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;
    use rxo_demo::experiment::Experiment;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed::<XenFlags>(line)?)
    }

    #[test]
    fn without_flags_it_is_everything() {
        let plan = plan("").unwrap();
        assert_eq!((plan.rates.len(), plan.exchanges.len(), plan.costs.len()), (84, 6, 48));
        assert_eq!((plan.paced.len(), plan.guests.len(), plan.machines.len()), (12, 50, 7));
        assert_eq!((plan.requests.len(), plan.several.len()), (1, 9));
        assert_eq!(plan.steps().unwrap(), 84 + 12 + 6 + 48 + 50 + 7 * 3 + 7 + 9);
        assert!(plan.needs_networks(), "for guests");
    }

    #[test]
    fn a_part_is_measured_alone() {
        for (line, steps) in [
            ("rate", 96),
            ("latency", 6),
            ("cost --quick", 11),
            ("throughput", 119),
            ("throughput --quick", 18),
            ("guests", 16),
            ("guests --quick", 2),
        ] {
            assert_eq!(plan(&format!("--only {line}")).unwrap().steps().unwrap(), steps, "{line}");
        }
        assert!(!plan("--only rate,latency").unwrap().needs_networks());
        assert!(plan("--only guests").unwrap().needs_networks());
        assert!(plan("--only speed").is_err());
        let error = plan("--out Cargo.toml").unwrap_err().to_string();
        assert!(error.starts_with("--out Cargo.toml: that is a file"), "{error}");
    }
}
