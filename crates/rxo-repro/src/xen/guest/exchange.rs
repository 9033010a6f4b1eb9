//! Requests and responses of one byte with live guests: what a transaction takes on the paper's [`Machine`] under each
//! system.
//!
//! All machines run at once and have the transactions in turn, so that what changes in the computer falls on all.
//! Where the memory of a guest lies stays with it, so they are booted several times, each time with
//! another one first. A guest answers by `cat`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rxo::Counters;
use rxo_coalesce::FlushReason;
use rxo_lab::{Guest, GuestImage, Namespace};
use serde::Serialize;

use super::machine::Machine;
use crate::guests::{PATIENCE, PORT, address, connect};
use crate::xen::system::System;

/// What transactions took, in microseconds, and how many there were a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(in crate::xen) struct Latency {
    pub(in crate::xen) p50_us: f64,
    pub(in crate::xen) p99_us: f64,
    pub(in crate::xen) per_second: f64,
}

/// Transactions of all systems, in rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::xen) struct Requests {
    /// Transactions of each system in a round.
    pub(in crate::xen) transactions: usize,
    /// In each round what every one of [`System::RECEIVERS`] took.
    pub(in crate::xen) rounds: Vec<[Latency; COMPARED]>,
    /// Deliveries that auto held beyond the poll that brought them.
    pub(in crate::xen) auto_held: u64,
    /// The time from the arrival of a request at the card to its way into the guest, under auto. It includes
    /// the wait for the worker's turn.
    pub(in crate::xen) auto_hold_p99_us: f64,
}

/// Systems that are compared.
pub(in crate::xen) const COMPARED: usize = System::RECEIVERS.len();

/// Measures so many rounds of so many transactions with the machines of the `boot`-th boot, counted from 0.
///
/// # Errors
/// If what a guest needs is missing, which one line names, or a connection breaks.
pub(in crate::xen) fn rounds(count: usize, transactions: usize, boot: usize) -> Result<Requests> {
    let image = GuestImage::find()?;
    let mut sides = start_all(&image, boot)?;
    for side in &mut sides {
        side.echo.transact(WARM_UP)?;
    }
    let mut rounds = Vec::with_capacity(count);
    for round in 0..count {
        let mut taken = [const { Vec::new() }; COMPARED];
        for place in in_turn(round) {
            taken[place] = sides[place].echo.transact(transactions)?;
        }
        rounds.push(taken.map(Latency::of));
    }
    let mut auto = None;
    for (side, system) in sides.into_iter().zip(System::RECEIVERS) {
        let engine = side.finish()?;
        auto = engine.filter(|_| system == System::Auto).or(auto);
    }
    let engine = auto.context("auto has no driver domain")?;
    Ok(Requests {
        transactions,
        rounds,
        auto_held: held(&engine),
        auto_hold_p99_us: engine.hold_ns.quantile(0.99) as f64 / 1e3,
    })
}

/// Starts a machine for each system, another one first in each boot. They are given in the order of the systems.
fn start_all(image: &GuestImage, boot: usize) -> Result<Vec<Side>> {
    let mut sides = [const { None }; COMPARED];
    for place in in_turn(boot) {
        sides[place] = Some(Side::start(image, System::RECEIVERS[place])?);
    }
    Ok(sides.into_iter().flatten().collect())
}

/// The places of all systems; each round begins with another one.
fn in_turn(round: usize) -> impl Iterator<Item = usize> {
    (0..COMPARED).map(move |place| (place + round) % COMPARED)
}

/// Deliveries that were held beyond their poll: neither lone segments nor for an idle receiver.
fn held(engine: &Counters) -> u64 {
    let at_once = [FlushReason::LoneSegment, FlushReason::ReceiverIdle];
    let at_once: u64 = at_once.iter().map(|reason| engine.flushed(*reason)).sum();
    engine.flushed_total() - at_once
}

impl Latency {
    /// Of transactions, in any order; there must be one.
    pub(super) fn of(mut taken: Vec<Duration>) -> Self {
        let per_second = taken.len() as f64 / taken.iter().sum::<Duration>().as_secs_f64();
        taken.sort_unstable();
        let last = taken.len() - 1;
        let at = |share: f64| taken[(last as f64 * share).round() as usize].as_secs_f64() * 1e6;
        Self { p50_us: at(0.5), p99_us: at(0.99), per_second }
    }
}

/// A guest that answers, on a machine of its own.
struct Side {
    echo: Echo,
    machine: Machine,
}

impl Side {
    fn start(image: &GuestImage, system: System) -> Result<Self> {
        let mut machine = Machine::start(image, system)?;
        let (guest, peer) = machine.ends();
        let echo = Echo::start(guest, peer, 0)?;
        Ok(Self { echo, machine })
    }

    fn finish(mut self) -> Result<Option<Counters>> {
        self.echo.finish(self.machine.ends().0)?;
        self.machine.finish()
    }
}

/// A connection to a guest that sends every byte back.
pub(super) struct Echo(TcpStream);

impl Echo {
    /// Connects from `network` to the `n`-th guest.
    pub(super) fn start(guest: &mut Guest, network: &Namespace, n: usize) -> Result<Self> {
        guest.start(&format!("nc -l -p {PORT} -e cat"))?;
        let stream = network.run(|| connect(address(n)))??;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    /// So many transactions, one after the other: how long each took.
    pub(super) fn transact(&mut self, count: usize) -> Result<Vec<Duration>> {
        (0..count).map(|_| self.once()).collect()
    }

    /// One transaction: how long it took.
    pub(super) fn once(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        self.0.write_all(b"x")?;
        self.0.read_exact(&mut [0]).context("the guest does not answer")?;
        Ok(begun.elapsed())
    }

    /// Ends the connection, and waits until the guest's program has ended.
    pub(super) fn finish(self, guest: &mut Guest) -> Result<()> {
        drop(self);
        guest.finish(PATIENCE)?;
        Ok(())
    }
}

/// Transactions that are not counted: neighbours and routes are learned.
const WARM_UP: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let taken = (1..=101).rev().map(Duration::from_micros).collect();
        let latency = Latency::of(taken);
        assert_eq!((latency.p50_us, latency.p99_us), (51.0, 100.0));
        assert!((latency.per_second - 1e6 / 51.0).abs() < 1e-6, "{latency:?}");
        let one = Latency::of(vec![Duration::from_micros(7)]);
        assert_eq!((one.p50_us, one.p99_us), (7.0, 7.0));
    }
}
