//! `rxo-lab xen`: Oi and Nakajima, "Optimizations of Large Receive Offload in Xen" (IEEE NCA 2009): measures
//! the saving of aggregation in the driver domain, for that domain and its guest, and Delayed Aggregation.
//!
//! The flags become a [`plan`]. The [`system`]s of the paper's Table III process the same [`traffic`] in the
//! same driver [`domain`]: on [`virtual_time`] for the times of deliveries, and under callgrind with a
//! guest's ring ([`driver`]) for the cost. An emulated Linux measures the cost of a [`guest`]. The
//! [`findings`] show [`figures`] with the values of the [`paper`] and verdicts.

mod domain;
pub(crate) mod driver;
mod figures;
mod findings;
mod guest;
mod paper;
mod plan;
mod portions;
mod system;
mod traffic;
mod virtual_time;

use anyhow::Result;
use rxo_demo::experiment::{Experiment, Output};
use rxo_demo::turns::{Cases, Turns};

use self::findings::{Found, Measured};
use self::guest::several::{self, Several};
use self::guest::{exchange, rate};
use self::plan::GuestCase;
pub(crate) use self::plan::Plan;
use self::traffic::{SEGMENT_BYTES, Traffic};
use crate::missing::{Missing, NOT_MEASURED};

impl Experiment for Plan {
    type Findings = Found;

    fn steps(&self) -> Result<usize> {
        let Self { rates, paced, exchanges, costs, guests, machines, requests, several, .. } = self;
        let counted = rates.len() + paced.len() + exchanges.len() + costs.len() + guests.len();
        Ok(counted + machines.len() * self.rounds + requests.len() * self.boots + several.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Found> {
        let traffic = Traffic::new(self.frames, SEGMENT_BYTES)?;
        let requests = Traffic::new(REQUESTS, 1)?;
        let name = |(system, frames): plan::Case| format!("{}, {frames} a poll", system.name());
        let rates = turns.measure(
            once(&self.rates),
            name,
            |(system, frames), _| virtual_time::rate(system, frames, &traffic),
            |rate| format!("{:.2} packets an aggregate", rate.packets_an_aggregate),
        )?;
        let paced = turns.measure(
            once(&self.paced),
            |(system, frames, guest)| {
                format!("{}, {frames} a poll, a guest that is {}", system.name(), guest.name())
            },
            |(system, frames, guest), _| virtual_time::paced((system, frames), guest, &traffic),
            |paced| format!("{:.2} packets an aggregate", paced.rate.packets_an_aggregate),
        )?;
        let exchanges = turns.measure(
            once(&self.exchanges),
            |system| format!("{}, requests", system.name()),
            |system, _| virtual_time::exchange(system, &requests),
            |exchange| format!("{:.0} a second", exchange.per_second),
        )?;
        let missing = Missing::default();
        let costs = turns.measure(
            once(&self.costs),
            name,
            |(system, frames), _| {
                Ok(missing.or_note(driver::count(system, frames, self.counted_frames)))
            },
            |cost| line(cost.map(|cost| cost.instructions_a_byte)),
        )?;
        let measured = Measured {
            rates: rates.concat(),
            paced: paced.concat(),
            exchanges: exchanges.concat(),
            costs: costs.into_iter().flatten().flatten().collect(),
            ..self.measure_guests(turns, &missing)?
        };
        Ok(Found::new(measured, missing.into_reasons()))
    }

    fn notes(&self, _: &Found) -> Vec<String> {
        findings::notes(self)
    }

    fn output(&self) -> &Output {
        &self.output
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
            once(&self.guests),
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
            once(&self.several),
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

/// Returns cases that do not depend on the machine's load, and so need one round.
const fn once<C>(cases: &[C]) -> Cases<'_, C> {
    Cases { cases, rounds: 1, rotated: 1 }
}

const REQUESTS: usize = 1_000;
