//! The plan of `rxo-lab xen`, from its flags.

use anyhow::Result;

use super::paper;
use super::system::System;
use super::virtual_time::Reader;
use crate::claim::Fact;
use crate::flags::{Part, RunFlags};

/// A system, and its frames per poll.
pub(super) type Case = (System, f64);

/// A system, its frames per poll, and the load of its guest, on the faster link.
pub(super) type PacedCase = (System, f64, Reader);

/// A system in front of a guest whose instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GuestCase {
    pub(super) system: System,
    /// Most frames per poll.
    pub(super) frames_a_poll: f64,
    /// `true` if the guest's kernel uses GRO.
    pub(super) gro: bool,
}

/// A system with several guests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SeveralCase {
    pub(super) system: System,
    pub(super) guests: usize,
}

/// The measurements to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) rates: Vec<Case>,
    pub(super) paced: Vec<PacedCase>,
    pub(super) exchanges: Vec<System>,
    pub(super) costs: Vec<Case>,
    pub(super) guests: Vec<GuestCase>,
    /// Bytes of the longer of a guest's two transfers.
    pub(super) guest_bytes: usize,
    /// Systems whose rate on the paper's machine is measured.
    pub(super) machines: Vec<System>,
    /// Number of rate measurements of each system.
    pub(super) rounds: usize,
    /// Bytes of the longer of the two transfers in a rate measurement.
    pub(super) machine_bytes: usize,
    /// Numbers of the rounds of transactions with live guests; empty to omit them.
    pub(super) requests: Vec<usize>,
    /// Number of boots of the guests that answer requests.
    pub(super) boots: usize,
    /// Transactions of each system in a round.
    pub(super) transactions: usize,
    pub(super) several: Vec<SeveralCase>,
    /// Bytes that each of several guests receives.
    pub(super) several_bytes: usize,
    /// Number of frames on virtual time.
    pub(super) frames: usize,
    /// Number of frames under callgrind.
    pub(super) counted_frames: usize,
}

/// Tables I and IV; the instructions of driver domain (counted) and guest of Table V; Table VI; Table VII on
/// virtual time; live guests.
pub(crate) const PARTS: &[Part] = &[
    Part::timed("throughput"),
    Part::counted("cost"),
    Part::counted("rate"),
    Part::counted("latency"),
    Part::timed("guests"),
];

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If `--only` names no part.
    pub(crate) fn from_flags(flags: &RunFlags) -> Result<Self> {
        let (parts, quick) = (flags.chosen(PARTS)?, flags.is_quick());
        let wanted = |part| parts.has(part);
        let each = |systems: &'static [System], polls: &'static [f64]| {
            let of = move |system| polls.iter().map(move |frames| (system, *frames));
            systems.iter().copied().flat_map(of)
        };
        let exchanges = System::DOMAINS.into_iter().filter(|_| wanted("latency"));
        let counts = wanted("cost") || wanted("throughput");
        let live = wanted("guests");
        Ok(Self {
            rates: each(&System::SWEPT, &POLLS).filter(|_| wanted("rate")).collect(),
            paced: if wanted("rate") { paced() } else { Vec::new() },
            exchanges: exchanges.collect(),
            costs: if counts {
                let polls = if quick { &QUICK_POLLS[..] } else { &COUNTED_POLLS };
                each(&System::COUNTED, polls).collect()
            } else {
                Vec::new()
            },
            guests: if counts && !flags.counted { guests(quick) } else { Vec::new() },
            guest_bytes: if quick { QUICK_BYTES } else { BYTES },
            machines: System::RECEIVERS.into_iter().filter(|_| wanted("throughput")).collect(),
            rounds: if quick { 1 } else { ROUNDS },
            machine_bytes: if quick { QUICK_MACHINE_BYTES } else { MACHINE_BYTES },
            requests: if live { vec![REQUEST_ROUNDS] } else { Vec::new() },
            boots: if quick { 1 } else { BOOTS },
            transactions: if quick { QUICK_TRANSACTIONS } else { TRANSACTIONS },
            several: if live { several(quick) } else { Vec::new() },
            several_bytes: if quick { QUICK_BYTES } else { SEVERAL_BYTES },
            frames: FRAMES,
            counted_frames: if quick { QUICK_FRAMES } else { COUNTED_FRAMES },
        })
    }

    pub(super) fn needs_guests(&self) -> bool {
        let Self { guests, machines, requests, several, .. } = self;
        !(guests.is_empty() && machines.is_empty() && requests.is_empty() && several.is_empty())
    }
}

/// Returns the cases on a link that is ten times as fast.
fn paced() -> Vec<PacedCase> {
    let each = |(system, guest)| PACED_POLLS.map(|frames| (system, frames, guest));
    LOADS.into_iter().flat_map(each).collect()
}

/// Returns the guests whose instructions are counted: with GRO as today's kernels use it, at the paper's
/// frames per poll also without it, and last the guest that owns the card, at the paper's frames per poll
/// only.
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

/// Returns the cases with several guests at once.
fn several(quick: bool) -> Vec<SeveralCase> {
    let case = |system| move |guests| SeveralCase { system, guests };
    if quick {
        return vec![case(System::Auto)(2)];
    }
    SEVERAL_SYSTEMS.into_iter().flat_map(|system| SEVERAL.map(case(system))).collect()
}

/// Frames per poll on virtual time, with the paper's value.
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
/// Frames per poll on the faster link. At least two: a poll of one frame leaves at once, whatever the guest
/// has read.
const PACED_POLLS: [f64; 4] = [2.0, paper::FRAMES_A_POLL, 4.0, 8.0];
/// Systems and guest loads that are compared on the faster link.
pub(super) const LOADS: [(System, Reader); 3] =
    [(System::Lro, Reader::Busy), (System::Auto, Reader::Busy), (System::Auto, Reader::Idle)];
pub(super) const COUNTED_POLLS: [f64; 6] = [1.0, paper::FRAMES_A_POLL, 4.0, 8.0, 16.0, FULL_LOAD];
const QUICK_POLLS: [f64; 1] = [paper::FRAMES_A_POLL];
/// Frames per poll at full load.
pub(super) const FULL_LOAD: f64 = 32.0;
const QUICK_SYSTEMS: [System; 2] = [System::Xen, System::BoDa];
/// Numbers of guests that run at once.
const SEVERAL: [usize; 3] = [1, 2, 4];
const SEVERAL_SYSTEMS: [System; 3] = [System::Xen, System::Lro, System::Auto];
/// Rate measurements of each system.
const ROUNDS: usize = 3;
/// Rounds of requests with one set of guests.
const REQUEST_ROUNDS: usize = 3;
/// Number of boots. Boots times rounds is odd, so that a middle value exists.
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

impl Plan {
    /// Returns the facts in the notes on the method.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let flags =
            |system: System| format!("{}: {}{}", system.name(), system.flags(), system.way());
        let numbers = [
            ("frames", self.counted_frames),
            ("short_kib", self.guest_bytes / 4_096),
            ("long_kib", self.guest_bytes / 1_024),
            ("short_mib", self.machine_bytes / (4 << 20)),
            ("long_mib", self.machine_bytes >> 20),
            ("transactions", self.transactions),
            ("boots", self.boots),
            ("several_kib", self.several_bytes / 1_024),
        ];
        let numbers = numbers.map(|(name, number)| (name, number.to_string()));
        [("systems", System::ALL.map(flags).join("; "))].into_iter().chain(numbers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;
    use crate::runner::Experiment;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed(line)?)
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
        let counted = plan("--counted").unwrap();
        assert!((counted.costs.len(), counted.needs_networks()) == (8, false));
        assert!(plan("--only speed").is_err());
    }
}
