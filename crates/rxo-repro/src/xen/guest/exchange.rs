//! Requests and responses of one byte with live guests: what a transaction takes without coalescing and
//! under `auto`.
//!
//! Two guests run at once, each behind a driver domain of its own, and have the transactions in turn, so
//! that what changes in the machine falls on both. Which core a guest got, and where its memory lies, stays with
//! it, so they are booted several times, and in turn one or the other first. A guest answers by `cat`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rxo::Counters;
use rxo::worker::GuestsReading;
use rxo_coalesce::FlushReason;
use rxo_lab::{Guest, GuestImage, Lab, Namespace, Processor};
use serde::Serialize;

use crate::folder::Folder;
use crate::guests::{PATIENCE, PORT, address, boot, connect};
use crate::running::Running;
use crate::xen::system::System;

/// What transactions took, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(in crate::xen) struct Latency {
    pub(in crate::xen) p50_us: f64,
    pub(in crate::xen) p99_us: f64,
}

/// Transactions without coalescing and under `auto`, in pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::xen) struct Requests {
    /// Transactions of each system in a pair.
    pub(in crate::xen) transactions: usize,
    /// In each pair Xen's and auto's.
    pub(in crate::xen) pairs: Vec<[Latency; 2]>,
    /// Deliveries that auto held beyond the poll that brought them.
    pub(in crate::xen) auto_held: u64,
    /// The time from the arrival of a request at the wire to its way into the guest, under auto. It includes
    /// the wait for the worker's turn.
    pub(in crate::xen) auto_hold_p99_us: f64,
}

/// The systems of a pair.
pub(in crate::xen) const COMPARED: [System; 2] = [System::Xen, System::Auto];

/// Measures so many pairs of so many transactions with the guests of the `boot`-th boot, counted from 0.
///
/// # Errors
/// If what a guest needs is missing, which one line names, or a connection breaks.
pub(in crate::xen) fn pairs(count: usize, transactions: usize, boot: usize) -> Result<Requests> {
    let (image, folder) = (GuestImage::find()?, Folder::new("xen")?);
    let start = |place: usize| Side::start(&image, COMPARED[place], &folder, place);
    let first = start(boot % 2)?;
    let second = start(1 - boot % 2)?;
    let mut sides = if boot.is_multiple_of(2) { [first, second] } else { [second, first] };
    for side in &mut sides {
        side.echo.transact(WARM_UP)?;
    }
    let mut pairs = Vec::with_capacity(count);
    for pair in 0..count {
        let mut taken = [Vec::new(), Vec::new()];
        for place in [pair % 2, 1 - pair % 2] {
            taken[place] = sides[place].echo.transact(transactions)?;
        }
        pairs.push(taken.map(Latency::of));
    }
    let [xen, auto] = sides;
    xen.finish()?;
    let totals = auto.finish()?;
    let engine = &totals.guests.first().context("rxo says nothing of its guest")?.engine;
    Ok(Requests {
        transactions,
        pairs,
        auto_held: held(engine),
        auto_hold_p99_us: engine.hold_ns.quantile(0.99) as f64 / 1e3,
    })
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
        taken.sort_unstable();
        let last = taken.len() - 1;
        let at = |share: f64| taken[(last as f64 * share).round() as usize].as_secs_f64() * 1e6;
        Self { p50_us: at(0.5), p99_us: at(0.99) }
    }
}

/// A guest that answers, behind a driver domain of its own. The last is dropped last.
struct Side {
    echo: Echo,
    guest: Guest,
    domain: Running<GuestsReading>,
    _lab: Lab,
}

impl Side {
    fn start(image: &GuestImage, system: System, folder: &Folder, n: usize) -> Result<Self> {
        let (lab, socket) = (Lab::through()?, folder.guest(n));
        let domain = Running::switching(&lab, system, std::slice::from_ref(&socket))?;
        let mut guest = boot(image, Processor::Emulated, &socket, 0)?;
        let echo = Echo::start(&mut guest, lab.peer(), 0)?;
        Ok(Self { echo, guest, domain, _lab: lab })
    }

    fn finish(mut self) -> Result<GuestsReading> {
        self.echo.finish(&mut self.guest)?;
        drop(self.guest);
        self.domain.finish()
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
        assert_eq!(Latency::of(taken), Latency { p50_us: 51.0, p99_us: 100.0 });
        let one = Latency::of(vec![Duration::from_micros(7)]);
        assert_eq!(one, Latency { p50_us: 7.0, p99_us: 7.0 });
    }
}
