//! One-byte transactions with a guest, one after another. The guest answers with `cat`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rxo_peers::Guest;
use rxo_testbed::Namespace;
use serde::Serialize;

use super::{PORT, TIMEOUT, address, connect};

/// Times of transactions in microseconds, and their rate per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) per_second: f64,
}

impl Latency {
    /// Summarizes the durations of transactions, in any order; there must be at least one.
    pub(crate) fn of(mut taken: Vec<Duration>) -> Self {
        let per_second = taken.len() as f64 / taken.iter().sum::<Duration>().as_secs_f64();
        taken.sort_unstable();
        let last = taken.len() - 1;
        let at = |share: f64| taken[(last as f64 * share).round() as usize].as_secs_f64() * 1e6;
        Self { p50_us: at(0.5), p99_us: at(0.99), per_second }
    }
}

/// A connection to a guest that echoes every byte.
pub(crate) struct Echo(TcpStream);

impl Echo {
    /// Connects from `network` to the `n`-th guest.
    pub(crate) fn start(guest: &mut Guest, network: &Namespace, n: usize) -> Result<Self> {
        guest.start(&format!("nc -l -p {PORT} -e cat"))?;
        let stream = network.run(|| connect(address(n)))??;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self(stream))
    }

    /// Runs `count` transactions in sequence. Returns the duration of each.
    pub(crate) fn transact(&mut self, count: usize) -> Result<Vec<Duration>> {
        (0..count).map(|_| self.once()).collect()
    }

    /// Runs one transaction. Returns its duration.
    pub(crate) fn once(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        self.0.write_all(b"x")?;
        self.0.read_exact(&mut [0]).context("the guest does not answer")?;
        Ok(begun.elapsed())
    }

    /// Closes the connection, and waits until the guest's program has ended.
    pub(crate) fn finish(self, guest: &mut Guest) -> Result<()> {
        drop(self);
        guest.finish(TIMEOUT)?;
        Ok(())
    }
}

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
