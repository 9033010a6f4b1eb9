//! Measures requests in sequence, without coalescing and with adaptive hold.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rxo_demo::stats::Quartiles;
use rxo_peers::GuestImage;
use rxo_testbed::median_bounds;
use serde::Serialize;

use super::bars::REQUESTS;
use super::domain::Domain;
use super::system::System;
use crate::rounds::Run;

const PORT: u16 = 7_000;
/// Number of requests per turn.
const TURN: u32 = 500;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The result of the measurement.
#[derive(Debug, Serialize)]
pub(super) struct Requests {
    pairs: u32,
    /// Median of the requests per second without coalescing.
    plain_a_second: f64,
    auto_a_second: f64,
    /// Ratio of the request rate with adaptive hold to that without, over the rounds: median and
    /// quartiles.
    ratio: Quartiles,
    /// 95 % confidence interval of the median ratio; `None` for too few rounds.
    bounds: Option<(f64, f64)>,
    /// Ratio as above, but for two measurements without coalescing, which shows the precision of the ratio.
    control: Quartiles,
    /// 99th percentile of the time for which the first segment of a delivery was held, in microseconds.
    hold_p99_us: Option<f64>,
}

impl Requests {
    /// Returns `true` if the ratio is precise enough: two halves without coalescing differ by less than the
    /// target's tolerance.
    pub(super) fn is_precise(&self) -> bool {
        (REQUESTS[0]..=REQUESTS[1]).contains(&self.control.median)
    }

    /// Returns the confidence interval of the median ratio.
    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        self.bounds
    }

    /// Returns the median ratio.
    pub(super) fn ratio(&self) -> f64 {
        self.ratio.median
    }
}

/// Measures the parts of each round in turn, beginning with another part each time. All parts share the guest
/// and the connection, because two equal guests differ by more than the tolerance; between parts rxo is
/// restarted.
pub(super) fn measure(image: &GuestImage, rxo: &Path, rounds: u32) -> Result<Requests> {
    let mut system = System::start(image, rxo, Domain::guest(false))?;
    let mut stream = echo(&mut system)?;
    let (mut parts, mut ran_auto, mut hold_p99_us) = (PARTS, false, None);
    let name = |is_auto: &bool| if *is_auto { "auto" } else { "plain" }.to_owned();
    let rates = Run::of(rounds).measure(&mut parts, name, |is_auto| {
        let said = system.exchange(rxo, Domain::guest(*is_auto))?;
        hold_p99_us = hold_p99(&said).filter(|_| ran_auto).or(hold_p99_us);
        ran_auto = *is_auto;
        // A warm-up turn, until the front end has reconnected and the caches are warm.
        turn(&mut stream)?;
        turn(&mut stream)
    })?;
    let over_plain = |part: usize| -> Vec<f64> {
        rates[part].iter().zip(&rates[0]).map(|(rate, plain)| rate / plain).collect()
    };
    let median = |part: usize| Quartiles::of(rates[part].iter().copied()).median;
    let ratios = over_plain(1);
    Ok(Requests {
        pairs: rounds,
        plain_a_second: median(0),
        auto_a_second: median(1),
        ratio: Quartiles::of(ratios.iter().copied()),
        bounds: median_bounds(&ratios),
        control: Quartiles::of(over_plain(2)),
        hold_p99_us,
    })
}

/// `true` for the parts of a round with adaptive hold.
const PARTS: [bool; 3] = [false, true, false];

/// Returns the hold time of a delivery's first segment (99th percentile, in microseconds) from the totals of
/// `rxo guest`.
fn hold_p99(said: &str) -> Option<f64> {
    let totals: serde_json::Value = serde_json::from_str(said).ok()?;
    totals["guests"][0]["hold_p99_us"].as_f64()
}

/// Opens a connection to a guest that echoes everything.
fn echo(system: &mut System) -> Result<TcpStream> {
    system.guest().run(&format!("(nc -l -p {PORT} -e cat &)"), TIMEOUT)?;
    let stream = system.connect(PORT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Runs one turn. Returns the requests per second.
fn turn(stream: &mut TcpStream) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..TURN {
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
    }
    Ok(f64::from(TURN) / start.elapsed().as_secs_f64())
}
