//! Measures one-byte transactions with live guests, on the paper's [`Machine`] under each system.
//!
//! The speed of an emulated guest depends on its memory layout, so systems are compared with the same guest:
//! the policy of its driver domain changes in turn, in each round. Three guests are booted several times: one
//! for Linux, and one for each path into a guest's memory. A guest answers with `cat`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rxo::Counters;
use rxo_coalesce::FlushReason;
use rxo_peers::{Guest, GuestImage};
use rxo_testbed::Namespace;
use serde::Serialize;

use super::machine::Machine;
use crate::guests::{PATIENCE, PORT, address, connect};
use crate::xen::system::System;

/// Times of transactions in microseconds, and their rate per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(in crate::xen) struct Latency {
    pub(in crate::xen) p50_us: f64,
    pub(in crate::xen) p99_us: f64,
    pub(in crate::xen) per_second: f64,
}

/// Results of one system in a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(in crate::xen) struct Turn {
    pub(in crate::xen) system: System,
    pub(in crate::xen) latency: Latency,
    /// Results of Xen with the same guest in the same round; `None` without a driver domain.
    pub(in crate::xen) xen: Option<Latency>,
}

/// Results of all systems with the guests of one boot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::xen) struct Requests {
    /// Number of transactions of each system in a round.
    pub(in crate::xen) transactions: usize,
    pub(in crate::xen) rounds: Vec<Vec<Turn>>,
    /// Deliveries that auto held beyond their own poll.
    pub(in crate::xen) auto_held: u64,
    /// 99th percentile of the time from a request's arrival at the card to its delivery into the guest, in
    /// microseconds, with the path that avoids the copy on the bridge. It includes the wait for the worker's
    /// turn.
    pub(in crate::xen) hold_p99_us: f64,
}

/// Groups of systems that differ only in policy, so that one guest serves each group. The first is Linux,
/// without a driver domain; the others begin with Xen.
const SIDES: [&[System]; 3] = [
    &[System::Linux],
    &[System::Xen, System::Lro, System::Da],
    &[System::Xen, System::Bo, System::BoDa, System::Auto],
];

/// Measures `count` rounds of `transactions` with the guests of the `boot`-th boot, counted from 0.
///
/// # Errors
/// If a guest's requirement is missing, which one line names, or a connection breaks.
pub(in crate::xen) fn rounds(count: usize, transactions: usize, boot: usize) -> Result<Requests> {
    let image = GuestImage::find()?;
    let mut sides =
        SIDES.iter().map(|systems| Side::start(&image, systems)).collect::<Result<Vec<_>>>()?;
    let mut rounds = Vec::with_capacity(count);
    for round in 0..count {
        let turns = sides.iter_mut().map(|side| side.round(transactions, boot + round));
        rounds.push(turns.collect::<Result<Vec<_>>>()?.concat());
    }
    let auto_held = sides.iter().map(|side| side.auto_held).sum();
    let mut hold_p99_us = 0.0;
    for side in sides {
        if let Some(engine) = side.finish()? {
            hold_p99_us = engine.hold_ns.quantile(0.99) as f64 / 1e3;
        }
    }
    Ok(Requests { transactions, rounds, auto_held, hold_p99_us })
}

/// Returns the deliveries that were held beyond their poll: all except lone segments and those for an idle
/// receiver.
fn held(engine: &Counters) -> u64 {
    let at_once = [FlushReason::LoneSegment, FlushReason::ReceiverIdle];
    let at_once: u64 = at_once.iter().map(|reason| engine.flushed(*reason)).sum();
    engine.flushed_total() - at_once
}

impl Latency {
    /// Summarizes the durations of transactions, in any order; there must be at least one.
    pub(super) fn of(mut taken: Vec<Duration>) -> Self {
        let per_second = taken.len() as f64 / taken.iter().sum::<Duration>().as_secs_f64();
        taken.sort_unstable();
        let last = taken.len() - 1;
        let at = |share: f64| taken[(last as f64 * share).round() as usize].as_secs_f64() * 1e6;
        Self { p50_us: at(0.5), p99_us: at(0.99), per_second }
    }
}

/// A guest that answers, and the systems that it serves in turn.
struct Side {
    echo: Echo,
    machine: Machine,
    systems: &'static [System],
    auto_held: u64,
}

impl Side {
    /// Starts the machine with the last of `systems`. All of them share its path into the guest, except Xen,
    /// which works with any path.
    fn start(image: &GuestImage, systems: &'static [System]) -> Result<Self> {
        let system = systems.last().copied().unwrap_or(System::Linux);
        let mut machine = Machine::start(image, system)?;
        let (guest, peer) = machine.ends();
        let mut echo = Echo::start(guest, peer, 0)?;
        echo.transact(WARM_UP)?;
        Ok(Self { echo, machine, systems, auto_held: 0 })
    }

    /// Measures `transactions` of each system; each round begins with another system.
    fn round(&mut self, transactions: usize, round: usize) -> Result<Vec<Turn>> {
        let count = self.systems.len();
        let mut taken = vec![Vec::new(); count];
        for place in (0..count).map(|place| (place + round) % count) {
            taken[place] = self.transact(self.systems[place], transactions)?;
        }
        let taken: Vec<_> = taken.into_iter().map(Latency::of).collect();
        let xen = (self.systems[0] == System::Xen).then_some(taken[0]);
        let turns = self.systems.iter().zip(taken);
        Ok(turns.map(|(&system, latency)| Turn { system, latency, xen }).collect())
    }

    fn transact(&mut self, system: System, transactions: usize) -> Result<Vec<Duration>> {
        if system == System::Linux {
            return self.echo.transact(transactions);
        }
        self.machine.follow(system)?;
        let before = held(&self.machine.engine()?);
        let taken = self.echo.transact(transactions)?;
        if system == System::Auto {
            self.auto_held += held(&self.machine.engine()?) - before;
        }
        Ok(taken)
    }

    fn finish(mut self) -> Result<Option<Counters>> {
        self.echo.finish(self.machine.ends().0)?;
        self.machine.finish()
    }
}

/// A connection to a guest that echoes every byte.
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

    /// Runs `count` transactions in sequence. Returns the duration of each.
    pub(super) fn transact(&mut self, count: usize) -> Result<Vec<Duration>> {
        (0..count).map(|_| self.once()).collect()
    }

    /// Runs one transaction. Returns its duration.
    pub(super) fn once(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        self.0.write_all(b"x")?;
        self.0.read_exact(&mut [0]).context("the guest does not answer")?;
        Ok(begun.elapsed())
    }

    /// Closes the connection, and waits until the guest's program has ended.
    pub(super) fn finish(self, guest: &mut Guest) -> Result<()> {
        drop(self);
        guest.finish(PATIENCE)?;
        Ok(())
    }
}

/// Uncounted transactions, in which neighbours and routes are learned.
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

    #[test]
    fn the_systems_of_a_guest_differ_by_policy_only() {
        for systems in SIDES {
            let last = systems.last().unwrap();
            let is_alike = |system: &&System| {
                **system == System::Xen
                    || (system.path(), system.layout()) == (last.path(), last.layout())
            };
            assert!(systems.iter().filter(is_alike).count() == systems.len(), "{systems:?}");
        }
        let all = System::RECEIVERS.iter();
        assert!(all.clone().all(|system| SIDES.concat().contains(system)), "{SIDES:?}");
    }
}
