//! `rxo repro menon card`: what Receive Aggregation and Acknowledgment Offload gain a host behind a card
//! that costs it nothing (section 5).
//!
//! The host is rxo's own on `virtio:`, a process of its own ([`receiver`]). `rxo card` moves frames between it
//! and the wire on the sender's core, as a card does by DMA, so all that the receiver's process costs is the
//! receiver's. A [`case`] is measured in a [`network`] twice: as it is, for processor time, and under
//! [`callgrind`], which counts instructions. Samples become [`row`]s, these the [`findings`].

mod callgrind;
mod case;
mod category;
mod findings;
mod network;
mod plan;
pub(crate) mod receiver;
mod row;

use anyhow::Result;

use self::case::Case;
use self::findings::Found;
use self::network::Sample;
pub(crate) use self::plan::Plan;
use self::row::Row;
use crate::experiment::{Experiment, Output};
use crate::turns::{Cases, Turns};

impl Experiment for Plan {
    type Findings = Found;

    /// Fails before anything is measured if callgrind is missing.
    fn steps(&self) -> Result<usize> {
        callgrind::check()?;
        Ok(self.rounds * self.cases.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Found> {
        let cases = Cases { cases: &self.cases, rounds: self.rounds, rotated: 1 };
        let line = |sample: &Sample| {
            let (counts, scaled) = (sample.per_packet(), sample.scaled_gbit_per_s());
            format!("{counts:>6.0} instructions/packet  {scaled:>6.2} Gbit/CPU s")
        };
        let samples =
            turns.measure(cases, Case::name, |case, _| network::measure(case, self), line)?;
        let rows = self.cases.iter().zip(&samples);
        Ok(Found::new(rows.filter_map(|(case, samples)| Row::of(*case, samples)).collect()))
    }

    fn notes(&self, _: &Found) -> Vec<String> {
        findings::notes(self)
    }

    fn output(&self) -> &Output {
        &self.output
    }
}
