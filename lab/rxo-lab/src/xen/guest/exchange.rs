//! Measures one-byte transactions with live guests, on the paper's machine ([`Machine`]) under each system.
//!
//! The speed of an emulated guest depends on its memory layout, so systems are compared with the same guest:
//! the policy of its driver domain changes in turn, in each round. Three guests are booted several times: one
//! for Linux, and one for each path into a guest's memory.

use std::time::Duration;

use anyhow::Result;
use rxo::Counters;
use rxo_coalesce::FlushReason;
use rxo_peers::GuestImage;
use serde::Serialize;

use crate::guests::echo::{Echo, Latency};
use crate::guests::machine::Machine;
use crate::xen::system::System;

/// Results of one system in a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Turn {
    pub(crate) system: System,
    pub(crate) latency: Latency,
    /// Results of Xen with the same guest in the same round; `None` without a driver domain.
    pub(crate) xen: Option<Latency>,
}

/// Results of all systems with the guests of one boot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Requests {
    /// Number of transactions of each system in a round.
    pub(crate) transactions: usize,
    pub(crate) rounds: Vec<Vec<Turn>>,
    /// Deliveries that auto held beyond their own poll.
    pub(crate) auto_held: u64,
    /// 99th percentile of the time from a request's arrival at the card to its delivery into the guest, in
    /// microseconds, with the path that avoids the copy on the bridge. It includes the wait for the worker's
    /// turn.
    pub(crate) hold_p99_us: f64,
}

/// Groups of systems that differ only in policy, so that one guest serves each group. The first is Linux,
/// without a driver domain; the others begin with Xen.
const SIDES: [&[System]; 3] = [
    &[System::Linux],
    &[System::Xen, System::Lro, System::Da],
    &[System::Xen, System::Bo, System::BoDa, System::Auto],
];

/// Measures `count` rounds of `transactions` with the guests of the `boot`-th boot, counted from 0.
pub(crate) fn rounds(count: usize, transactions: usize, boot: usize) -> Result<Requests> {
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
        let mut machine = Machine::start(image, system.treatment())?;
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
        self.machine.follow(system.policy())?;
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

/// Uncounted transactions, in which neighbours and routes are learned.
const WARM_UP: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

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
