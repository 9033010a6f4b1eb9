//! `rxo-lab menon card`: measures the gain of Receive Aggregation and Acknowledgment Offload for a host
//! behind a card that costs the host nothing (section 5).
//!
//! The host is rxo's own on `virtio:`, in a separate process ([`receiver`]). `rxo card` moves frames between
//! that process and the wire on the sender's core, as a card does by DMA, so the process's cost is the
//! receiver's alone. A [`case`] is measured in a [`network`] twice: natively for processor time, and under
//! [`callgrind`](crate::callgrind) for instructions. If the receiver must never wait, a [`generator`] sends.
//! Samples become [`row`]s, and rows become [`figures`]. Two more parts are a guest with [`linux`]'s own
//! stack, and a simulation of [`prefetch`]ing processors.

mod aims;
mod case;
mod category;
mod figures;
mod generator;
pub(crate) mod linux;
mod network;
mod plan;
mod prefetch;
pub(crate) mod receiver;
mod row;

use anyhow::{Context, Result};
use rxo_demo::turns::{Cases, Turns};
use rxo_peers::GuestImage;
use serde::Serialize;

use self::case::Case;
use self::linux::Cost;
use self::network::Sample;
pub(crate) use self::plan::{PARTS, Plan};
use self::prefetch::Simulated;
use self::row::{Row, Rows};
use crate::claim::Claim;
use crate::figure::Figure;
use crate::guests;
use crate::missing::{Missing, NOT_MEASURED};
use crate::runner::{Experiment, Outcome};

/// The results of all experiments with a card.
#[derive(Debug, Default, Serialize)]
struct Measured {
    /// Results of rxo's own host: bulk transfers and requests.
    rows: Vec<Row>,
    /// Results of Linux's own stack in a guest.
    linux: Vec<Cost>,
    /// Simulated cost of a packet for each kind of prefetching.
    simulated: Vec<Simulated>,
}

impl Experiment for Plan {
    /// Checks for valgrind, and finds or downloads the guests' kernel, which a private network could not
    /// reach.
    fn prepare(&self) -> Result<()> {
        crate::callgrind::check()?;
        if self.feeds.is_empty() {
            return Ok(());
        }
        let found = GuestImage::compiler().map_err(Into::into).and_then(|_| guests::image());
        found
            .map(|_| ())
            .context("Linux's own stack needs a guest; name other experiments with --only")
    }

    fn steps(&self) -> Result<usize> {
        Ok(self.rounds * self.cases.len() + self.feeds.len() + self.simulated.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
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
            Cases { cases: &self.feeds, rounds: 1, rotated: 1 },
            |feed| format!("Linux in a guest, {}", feed.name()),
            |feed, _| Ok(missing.or_note(linux::cost(feed, self))),
            |cost| cost.as_ref().map_or(NOT_MEASURED.to_owned(), Cost::line),
        )?;
        let simulated = turns.count(
            &self.simulated,
            |prefetch| format!("simulation, prefetching {}", prefetch.name()),
            |prefetch| Ok(Simulated::of(prefetch, &network::simulate(prefetch, self)?)),
            Simulated::line,
        )?;
        let linux = linux.into_iter().flatten().flatten().collect();
        let measured = Measured { rows, linux, simulated };
        let outcome = Outcome::new(measured.figures(), &measured)?.claims(measured.aims());
        Ok(outcome.facts(self.facts()).missing(missing))
    }
}

impl Measured {
    fn figures(&self) -> Vec<Figure> {
        let simulated = prefetch::figure_1(&self.simulated).into_iter();
        let of_guest = linux::figure_10(&self.linux);
        simulated.chain(figures::all(Rows(&self.rows))).chain(of_guest).collect()
    }

    fn aims(&self) -> Vec<Claim> {
        [aims::all(Rows(&self.rows)), linux::aims(&self.linux)].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::linux::Feed;
    use super::linux::tests::cost;
    use super::row::tests::row;
    use super::*;
    use crate::menon::receive::stack::Stack;

    /// Makes results in which both optimizations cost this many instructions and nanoseconds a packet.
    fn measured((instructions, ns): (f64, f64)) -> Measured {
        let limits = [1, 2, 5, 35].map(|limit| {
            let cost = 300.0 + 700.0 / f64::from(limit);
            row(Case::one_processor(Stack::limited(limit)), cost, cost)
        });
        let mut rows = vec![
            row(Case::SINGLE, 1_500.0, 700.0),
            row(Case::one_processor(Stack::ORIGINAL), 1_000.0, 500.0),
            row(Case::one_processor(Stack::OPTIMIZED), instructions, ns),
            row(Case::two_processors(Stack::ORIGINAL), 1_000.0, 500.0),
            row(Case::two_processors(Stack::OPTIMIZED), instructions, ns),
            row(Case::requests(Stack::ORIGINAL), 1_000.0, 500.0),
            row(Case::requests(Stack::OPTIMIZED), 1_010.0, 500.0),
        ];
        rows.extend(limits);
        Measured { rows, ..Measured::default() }
    }

    fn aims(measured: &Measured) -> Vec<Option<bool>> {
        measured.aims().iter().map(Claim::holds).collect()
    }

    fn figure(measured: &Measured, number: &str) -> Vec<Option<bool>> {
        let figures = measured.figures();
        figures.iter().find(|figure| figure.number == number).unwrap().verdicts()
    }

    #[test]
    fn aims_are_met_or_not_by_the_rows_alone() {
        let met = measured((335.0, 300.0));
        assert_eq!(aims(&met), [Some(true), Some(true), Some(true), None, None]);
        assert_eq!(figure(&met, "11 on a card"), [Some(true)]);
        assert_eq!(aims(&measured((800.0, 400.0)))[..3], [Some(false); 3]);
    }

    #[test]
    fn a_guest_has_aims_and_a_figure() {
        let linux = [(Feed::Plain, 1_000.0), (Feed::Aggregates, 300.0), (Feed::Split, 100.0)];
        let linux = linux.map(|(feed, guest)| cost(feed, guest, 100.0)).to_vec();
        let measured = Measured { linux, ..Measured::default() };
        assert_eq!(aims(&measured)[3..], [Some(true); 2]);
        assert_eq!(figure(&measured, "10 on a card"), [Some(true)]);
    }

    #[test]
    fn requests_may_cost_no_more_than_two_percent() {
        let of = |cost| {
            let cases = [Stack::ORIGINAL, Stack::OPTIMIZED].map(Case::requests);
            let rows = cases.into_iter().zip([1_000.0, cost]);
            let rows = rows.map(|(case, cost)| row(case, cost, 500.0)).collect();
            figure(&Measured { rows, ..Measured::default() }, "Table 1 on a card")
        };
        assert_eq!((of(1_015.0), of(1_050.0)), (vec![Some(true)], vec![Some(false)]));
    }

    #[test]
    fn figures_are_named_and_nothing_measured_is_none() {
        let ids: Vec<_> = measured((335.0, 300.0)).figures().iter().map(Figure::id).collect();
        let numbers = ["figure-7", "figure-8", "figure-9", "figure-11", "table-1"];
        assert_eq!(ids, numbers.map(|number| format!("{number}-on-a-card")));
        assert!(Measured::default().figures().is_empty());
    }
}
