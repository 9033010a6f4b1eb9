//! Request and response: single bytes are sent back and forth.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::STALL_TIMEOUT;
use super::connect::{self, Ends};
use crate::error::{Context, LabError, Result, usage};
use crate::namespace::Namespace;
use crate::worker::Worker;

/// The parameters of a request/response exchange.
#[derive(Clone, Copy, Debug)]
pub struct PingPongConfig {
    /// The time for which bytes are exchanged.
    pub duration: Duration,
    /// The core of the requesting thread; `None` lets the scheduler choose.
    pub client_core: Option<usize>,
    /// The core of the answering thread; `None` lets the scheduler choose.
    pub server_core: Option<usize>,
}

/// The result of a request/response exchange.
#[derive(Clone, Debug)]
pub struct PingPongReport {
    /// The number of round trips.
    pub exchanges: u64,
    /// The time that all round trips together took.
    pub duration: Duration,
    round_trips_ns: Histogram<u64>,
}

impl PingPongReport {
    /// Returns the number of round trips per second.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        self.exchanges as f64 / self.duration.as_secs_f64()
    }

    /// Returns the quantile `share` (0 to 1) of the round-trip times, in microseconds.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.round_trips_ns.value_at_quantile(share) as f64 / 1000.0
    }
}

/// Exchanges single bytes between `from` and `address` in `to`, over one connection.
///
/// # Errors
/// If the connection cannot be established, breaks, or stalls.
pub fn ping_pong(
    from: &Namespace,
    to: &Namespace,
    address: IpAddr,
    config: PingPongConfig,
) -> Result<PingPongReport> {
    let listener = connect::listen(to, address)?;
    let mut ends = connect::open(&[from], &listener, 1)?;
    let Some(Ends { sender: client, receiver: server }) = ends.pop() else {
        return Err(LabError::Transfer("no connection was opened".into()));
    };
    for socket in [&client, &server] {
        socket
            .set_nodelay(true)
            .and_then(|()| socket.set_read_timeout(Some(STALL_TIMEOUT)))
            .context(|| "cannot configure a socket".into())?;
    }
    let server = Worker::start("lab-answer", config.server_core, move || answer(server))?;
    let client =
        Worker::start("lab-ask", config.client_core, move || ask(client, config.duration))?;
    let report = client.finish()?;
    server.finish()?;
    Ok(report)
}

pub(super) fn ask(mut socket: TcpStream, duration: Duration) -> Result<PingPongReport> {
    let mut round_trips_ns = new_histogram()?;
    let mut byte = [0];
    let begin = Instant::now();
    let mut sent_at = begin;
    while sent_at - begin < duration {
        socket.write_all(&byte).and_then(|()| socket.read_exact(&mut byte)).map_err(broken)?;
        let received_at = Instant::now();
        round_trips_ns.saturating_record((received_at - sent_at).as_nanos() as u64);
        sent_at = received_at;
        byte[0] = byte[0].wrapping_add(1);
    }
    Ok(PingPongReport {
        exchanges: round_trips_ns.len(),
        duration: sent_at - begin,
        round_trips_ns,
    })
}

fn answer(mut socket: TcpStream) -> Result<()> {
    let mut byte = [0];
    while socket.read(&mut byte).map_err(broken)? > 0 {
        socket.write_all(&byte).map_err(broken)?;
    }
    Ok(())
}

/// Creates a histogram of round-trip times from one nanosecond to [`STALL_TIMEOUT`], with a precision of three
/// significant digits.
fn new_histogram() -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, STALL_TIMEOUT.as_nanos() as u64, 3)
        .map_err(|error| usage(error.to_string()))
}

fn broken(error: io::Error) -> LabError {
    LabError::Transfer(format!("the request/response connection broke or stood still: {error}"))
}
