//! `rxo-lab xen`: Oi and Nakajima, "Optimizations of Large Receive Offload in Xen" (IEEE NCA 2009): measures
//! the saving of aggregation in the driver domain, for that domain and its guest, and Delayed Aggregation.
//!
//! The flags become a [`plan`]. The [`system`]s of the paper's Table III process the same [`traffic`] in the
//! same driver [`domain`]: on [`virtual_time`] for the times of deliveries, and under callgrind with a
//! guest's ring ([`driver`]) for the cost. An emulated Linux measures the cost of a [`guest`]. The
//! [`figures`] show the values of the [`paper`] beside ours.

mod domain;
pub(crate) mod driver;
mod figures;
mod guest;
mod paper;
mod plan;
mod portions;
mod system;
mod traffic;
mod virtual_time;

use anyhow::Result;
use rxo_demo::turns::{Cases, Turns};
use serde::Serialize;

use self::driver::Cost;
use self::guest::GuestCost;
use self::guest::exchange::Requests;
use self::guest::rate::GuestRate;
use self::guest::several::{self, Several};
use self::guest::{exchange, rate};
use self::plan::GuestCase;
pub(crate) use self::plan::{PARTS, Plan};
use self::traffic::{SEGMENT_BYTES, Traffic};
use self::virtual_time::{Exchange, Paced, Rate};
use crate::missing::{Missing, NOT_MEASURED};
use crate::runner::{Experiment, Outcome};

/// The results of all measurements.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    rates: Vec<Rate>,
    paced: Vec<Paced>,
    exchanges: Vec<Exchange>,
    costs: Vec<Cost>,
    guests: Vec<GuestCost>,
    machines: Vec<GuestRate>,
    requests: Vec<Requests>,
    several: Vec<Several>,
}

impl Experiment for Plan {
    /// Installs programs and a kernel for guests, while the network is still reachable. A failure is reported
    /// once a guest is to start.
    fn prepare(&self) -> Result<()> {
        if self.needs_guests() {
            _ = crate::guests::image();
        }
        Ok(())
    }

    fn steps(&self) -> Result<usize> {
        let Self { rates, paced, exchanges, costs, guests, machines, requests, several, .. } = self;
        let counted = rates.len() + paced.len() + exchanges.len() + costs.len() + guests.len();
        Ok(counted + machines.len() * self.rounds + requests.len() * self.boots + several.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let traffic = Traffic::new(self.frames, SEGMENT_BYTES);
        let requests = Traffic::new(REQUESTS, 1);
        let name = |(system, frames): plan::Case| format!("{}, {frames} a poll", system.name());
        let rates = turns.count(
            &self.rates,
            name,
            |(system, frames)| virtual_time::rate(system, frames, &traffic),
            |rate| format!("{:.2} packets an aggregate", rate.packets_an_aggregate),
        )?;
        let paced = turns.count(
            &self.paced,
            |(system, frames, guest)| {
                format!("{}, {frames} a poll, a guest that is {}", system.name(), guest.name())
            },
            |(system, frames, guest)| virtual_time::paced((system, frames), guest, &traffic),
            |paced| format!("{:.2} packets an aggregate", paced.rate.packets_an_aggregate),
        )?;
        let exchanges = turns.count(
            &self.exchanges,
            |system| format!("{}, requests", system.name()),
            |system| virtual_time::exchange(system, &requests),
            |exchange| format!("{:.0} a second", exchange.per_second),
        )?;
        let missing = Missing::default();
        let costs = turns.count(
            &self.costs,
            name,
            |(system, frames)| {
                Ok(missing.or_note(driver::count(system, frames, self.counted_frames)))
            },
            |cost| line(cost.map(|cost| cost.instructions_a_byte)),
        )?;
        let measured = Measured {
            rates,
            paced,
            exchanges,
            costs: costs.into_iter().flatten().collect(),
            ..self.measure_guests(turns, &missing)?
        };
        let several = measured.several.iter().flat_map(|several| &several.each);
        let is_intact = several.into_iter().all(|each| each.is_intact);
        let outcome = Outcome::new(figures::all(&measured), &measured)?.facts(self.facts());
        Ok(outcome.missing(missing).intact(is_intact))
    }

    fn needs_networks(&self) -> bool {
        self.needs_guests()
    }
}

impl Plan {
    /// Runs all measurements with Linux guests.
    ///
    /// # Errors
    /// Never: a failed measurement is recorded in `missing`.
    fn measure_guests(&self, turns: &Turns<'_>, missing: &Missing) -> Result<Measured> {
        let guests = turns.measure(
            Cases { cases: &self.guests, rounds: 1, rotated: 1 },
            guest_name,
            |case, _| Ok(missing.or_note(guest::cost(case, self.guest_bytes))),
            |cost| line(cost.map(|cost| cost.instructions_a_byte)),
        )?;
        let machines = turns.measure(
            Cases { cases: &self.machines, rounds: self.rounds, rotated: self.machines.len() },
            |system| format!("one core, {}", system.name()),
            |system, _| Ok(missing.or_note(rate::measure(system, self.machine_bytes))),
            |rate| {
                rate.map_or(NOT_MEASURED.to_owned(), |it| format!("{:.0} Mbit/s", it.mbit_per_s))
            },
        )?;
        let requests = turns.measure(
            Cases { cases: &self.requests, rounds: self.boots, rotated: 1 },
            |rounds| format!("{rounds} rounds of requests to guests"),
            |rounds, boot| Ok(missing.or_note(exchange::rounds(rounds, self.transactions, boot))),
            |requests| if requests.is_some() { "measured" } else { NOT_MEASURED }.to_owned(),
        )?;
        let several = turns.measure(
            Cases { cases: &self.several, rounds: 1, rotated: 1 },
            |case| format!("{} guests, {}", case.guests, case.system.name()),
            |case, _| {
                let measured = several::measure(case, self.several_bytes, self.transactions);
                Ok(missing.or_note(measured))
            },
            |several| line(several.as_ref().map(Several::instructions_a_byte)),
        )?;
        Ok(Measured {
            guests: guests.into_iter().flatten().flatten().collect(),
            machines: machines.into_iter().flatten().flatten().collect(),
            requests: requests.into_iter().flatten().flatten().collect(),
            several: several.into_iter().flatten().flatten().collect(),
            ..Measured::default()
        })
    }
}

fn guest_name(GuestCase { system, frames_a_poll, gro }: GuestCase) -> String {
    let gro = if gro { "" } else { ", GRO off" };
    format!("guest, {}, {frames_a_poll} a poll{gro}", system.name())
}

fn line(instructions_a_byte: Option<f64>) -> String {
    instructions_a_byte
        .map_or(NOT_MEASURED.to_owned(), |count| format!("{count:.3} instructions a byte"))
}

const REQUESTS: usize = 1_000;
