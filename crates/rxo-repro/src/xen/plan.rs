//! What the flags of `rxo repro xen` mean.

use anyhow::Result;

use super::paper;
use super::system::System;
use crate::experiment::Output;
use crate::flags::{XenFlags, XenPart};

/// A system, and the frames of its polls.
pub(super) type Case = (System, f64);

/// What is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) rates: Vec<Case>,
    pub(super) exchanges: Vec<System>,
    pub(super) costs: Vec<Case>,
    pub(super) guests: Vec<Case>,
    /// Bytes of the longer transfer to a guest.
    pub(super) guest_bytes: usize,
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
        let each = |polls: &'static [f64]| {
            let of = move |system| polls.iter().map(move |frames| (system, *frames));
            System::DOMAINS.into_iter().flat_map(of)
        };
        let exchanges = System::DOMAINS.into_iter().filter(|_| wanted(XenPart::Latency));
        let counts = wanted(XenPart::Cost) || wanted(XenPart::Throughput);
        Ok(Self {
            rates: each(&POLLS).filter(|_| wanted(XenPart::Rate)).collect(),
            exchanges: exchanges.collect(),
            costs: if counts {
                each(if *quick { &QUICK_POLLS } else { &COUNTED_POLLS }).collect()
            } else {
                Vec::new()
            },
            guests: match (counts, *quick) {
                (false, _) => Vec::new(),
                (true, true) => QUICK_GUESTS.to_vec(),
                (true, false) => each(&GUEST_POLLS).collect(),
            },
            guest_bytes: if *quick { QUICK_BYTES } else { BYTES },
            frames: FRAMES,
            counted_frames: if *quick { QUICK_FRAMES } else { COUNTED_FRAMES },
            output: Output::drawn(*json, out)?,
        })
    }

    /// Gets a kernel for guests, which may need the network that a private one lacks. A failure is reported
    /// when a guest is to start.
    pub(crate) fn prepare(&self) {
        if !self.guests.is_empty() {
            _ = rxo_lab::GuestImage::find();
        }
    }
}

/// Frames a poll; the paper's among them.
const POLLS: [f64; 11] =
    [1.0, 2.0, paper::FRAMES_A_POLL, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0];
pub(super) const COUNTED_POLLS: [f64; 6] = [1.0, paper::FRAMES_A_POLL, 4.0, 8.0, 16.0, FULL_LOAD];
const QUICK_POLLS: [f64; 1] = [paper::FRAMES_A_POLL];
/// A poll at full load.
pub(super) const FULL_LOAD: f64 = 32.0;
/// The paper's, and full load.
const GUEST_POLLS: [f64; 2] = [paper::FRAMES_A_POLL, FULL_LOAD];
const QUICK_GUESTS: [Case; 2] =
    [(System::Xen, paper::FRAMES_A_POLL), (System::BoDa, paper::FRAMES_A_POLL)];
const BYTES: usize = 16 << 20;
const QUICK_BYTES: usize = 2 << 20;
const FRAMES: usize = 20_000;
const COUNTED_FRAMES: usize = 4_000;
const QUICK_FRAMES: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::flags::typed;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed::<XenFlags>(line)?)
    }

    #[test]
    fn without_flags_it_is_everything() {
        let plan = plan("").unwrap();
        assert_eq!((plan.rates.len(), plan.exchanges.len(), plan.costs.len()), (66, 6, 36));
        assert_eq!((plan.guests.len(), plan.steps().unwrap()), (12, 120));
        assert!(plan.needs_networks(), "for guests");
    }

    #[test]
    fn a_part_is_measured_alone() {
        for (line, steps) in [("rate", 66), ("latency", 6), ("cost --quick", 8), ("throughput", 48)]
        {
            assert_eq!(plan(&format!("--only {line}")).unwrap().steps().unwrap(), steps, "{line}");
        }
        assert!(!plan("--only rate,latency").unwrap().needs_networks());
        assert!(plan("--only speed").is_err());
        let error = plan("--out Cargo.toml").unwrap_err().to_string();
        assert!(error.starts_with("--out Cargo.toml: that is a file"), "{error}");
    }
}
