//! Requests one after the other, without coalescing and with adaptive hold.

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rxo_lab::GuestImage;
use serde::Serialize;

use super::domain::Domain;
use super::system::System;
use crate::stats::Summary;

const PORT: u16 = 7_000;
/// Requests of one turn.
const TURN: u32 = 500;
const PATIENCE: Duration = Duration::from_secs(60);

/// The result.
#[derive(Debug, Serialize)]
pub(super) struct Requests {
    pairs: u32,
    /// Requests a second without coalescing: quartiles and median.
    plain_a_second: f64,
    auto_a_second: f64,
    /// Rate with adaptive hold over the rate without, by pair: lower quartile, median, upper quartile.
    ratio: [f64; 3],
    /// How long the first segment of a delivery was held, in microseconds.
    hold_p99_us: Option<f64>,
}

impl Requests {
    /// The median of the ratios.
    pub(super) fn ratio(&self) -> f64 {
        self.ratio[1]
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, median, high] = self.ratio;
        let hold = self.hold_p99_us.map_or("unknown".to_owned(), |hold| format!("{hold} us"));
        write!(
            f,
            "requests a second: {:.0} without coalescing, {:.0} with adaptive hold; ratio of {} pairs \
             {median:.3} ({low:.3} to {high:.3}); hold p99 {hold}",
            self.plain_a_second, self.auto_a_second, self.pairs
        )
    }
}

/// Measures pairs in turn; which half comes first alternates.
pub(super) fn measure(image: &GuestImage, rxo: &Path, pairs: u32) -> Result<Requests> {
    let mut plain = System::start(image, rxo, Domain::guest(false))?;
    let mut auto = System::start(image, rxo, Domain::guest(true))?;
    let mut streams = [echo(&mut plain)?, echo(&mut auto)?];
    for stream in &mut streams {
        turn(stream)?;
    }
    let mut rates: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        let first = (pair % 2) as usize;
        for which in [first, 1 - first] {
            rates[which].push(turn(&mut streams[which])?);
        }
    }
    let ratios: Vec<f64> =
        rates[1].iter().zip(&rates[0]).map(|(auto, plain)| auto / plain).collect();
    let Summary { low, median, high } = Summary::of(&ratios);
    drop(streams);
    let totals: serde_json::Value =
        serde_json::from_str(&auto.end()?).context("rxo printed no totals")?;
    Ok(Requests {
        pairs,
        plain_a_second: Summary::of(&rates[0]).median,
        auto_a_second: Summary::of(&rates[1]).median,
        ratio: [low, median, high],
        hold_p99_us: totals["guests"][0]["hold_p99_us"].as_f64(),
    })
}

/// A connection to a guest that sends back what it gets.
fn echo(system: &mut System) -> Result<TcpStream> {
    system.guest().run(&format!("(nc -l -p {PORT} -e cat &)"), PATIENCE)?;
    let stream = system.connect(PORT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Requests a second over one turn.
fn turn(stream: &mut TcpStream) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..TURN {
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
    }
    Ok(f64::from(TURN) / start.elapsed().as_secs_f64())
}
