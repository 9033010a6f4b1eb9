//! `rxo-lab menon card`: measures the gain of Receive Aggregation and Acknowledgment Offload for a host
//! behind a card that costs the host nothing (section 5).
//!
//! The host is rxo's own on `virtio:`, in a separate process ([`receiver`]). `rxo card` moves frames between
//! that process and the wire on the sender's core, as a card does by DMA, so the process's cost is the
//! receiver's alone. A [`case`] is measured in a [`network`] twice: natively for processor time, and under
//! [`callgrind`](crate::callgrind) for instructions. If the receiver must never wait, a [`generator`] sends.
//! Samples become [`row`]s, and rows become [`findings`]. Two more parts are a guest with [`linux`]'s own
//! stack, and a simulation of [`prefetch`]ing processors.

mod aims;
mod case;
mod category;
mod figures;
mod findings;
mod generator;
pub(crate) mod linux;
mod network;
mod plan;
mod prefetch;
pub(crate) mod receiver;
mod row;

use anyhow::Result;
use rxo_demo::experiment::{Experiment, Output};
use rxo_demo::turns::{Cases, Turns};

use self::case::Case;
use self::findings::{Found, Measured};
use self::linux::Cost;
use self::network::Sample;
pub(crate) use self::plan::Plan;
use self::prefetch::Simulated;
use self::row::Row;
use crate::missing::{Missing, NOT_MEASURED};

impl Experiment for Plan {
    type Findings = Found;

    fn steps(&self) -> Result<usize> {
        Ok(self.rounds * self.cases.len() + self.feeds.len() + self.simulated.len())
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
        let rows = rows.filter_map(|(case, samples)| Row::of(*case, samples)).collect();
        let missing = Missing::default();
        let linux = turns.measure(
            once(&self.feeds),
            |feed| format!("Linux in a guest, {}", feed.name()),
            |feed, _| Ok(missing.or_note(linux::cost(feed, self))),
            |cost| cost.as_ref().map_or(NOT_MEASURED.to_owned(), Cost::line),
        )?;
        let simulated = turns.measure(
            once(&self.simulated),
            |prefetch| format!("simulation, prefetching {}", prefetch.name()),
            |prefetch, _| Ok(Simulated::of(prefetch, &network::simulate(prefetch, self)?)),
            Simulated::line,
        )?;
        let linux = linux.into_iter().flatten().flatten().collect();
        let measured = Measured { rows, linux, simulated: simulated.concat() };
        Ok(Found::new(measured, missing.into_reasons()))
    }

    fn notes(&self, _: &Found) -> Vec<String> {
        findings::notes(self)
    }

    fn output(&self) -> &Output {
        &self.output
    }
}

/// Returns cases that are counted or simulated, and so need only one, long, round.
const fn once<C>(cases: &[C]) -> Cases<'_, C> {
    Cases { cases, rounds: 1, rotated: 1 }
}
