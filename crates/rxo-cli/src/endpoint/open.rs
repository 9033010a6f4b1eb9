//! Opening connections while watching for a request to stop.

use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use rxo::live::host::{Outcome, RunningHost};
use rxo_driver::wait::wait_readable;
use rxo_host::TcpStream;

use super::EndpointPlan;
use super::plan::Other;
use crate::exit::partial;
use crate::hosting::Listeners;
use crate::stop;

/// A running host.
pub(crate) struct Endpoint {
    host: RunningHost,
    other: Other,
    stop: Arc<AtomicBool>,
}

impl Endpoint {
    /// Starts the host. From here on a signal sets a flag instead of ending the process.
    ///
    /// # Errors
    /// If the device cannot be opened, or does not fit the host.
    pub(crate) fn start(plan: &EndpointPlan) -> Result<Self> {
        let stop = stop::on_request()?;
        let host = plan.host.start_with(|config| plan.configure(config))?;
        Ok(Self { host, other: plan.other.clone(), stop })
    }

    /// Whether a signal has come, or the host has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.was_asked() || !self.host.is_running()
    }

    /// Whether a signal has come.
    pub(crate) fn was_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Opens one connection: connects or accepts, as planned.
    ///
    /// # Errors
    /// If it cannot be opened, or a signal came first.
    pub(crate) fn one(&self) -> Result<TcpStream> {
        match &self.listen()? {
            Some(listeners) => {
                self.accept(listeners)?.context("interrupted while waiting for a peer")
            }
            None => self.connect(),
        }
    }

    /// Listens; `None` if this side connects.
    ///
    /// # Errors
    /// If the port is taken.
    pub(crate) fn listen(&self) -> Result<Option<Listeners>> {
        let Other::Listen(addresses) = &self.other else { return Ok(None) };
        let addresses = addresses.iter().copied();
        Listeners::open(&self.host.handle(), addresses, BACKLOG).map(Some)
    }

    /// Accepts the next peer; `None` if a signal came first.
    ///
    /// # Errors
    /// If the host has ended.
    pub(crate) fn accept(&self, listeners: &Listeners) -> Result<Option<TcpStream>> {
        while !self.is_over() {
            if let Some((stream, _)) = listeners.accept_within(SHORT)? {
                limit_waits(&stream)?;
                return Ok(Some(stream));
            }
        }
        Ok(None)
    }

    /// Connects to the peer.
    ///
    /// # Errors
    /// If the peer refuses, does not answer in time, or a signal came first.
    pub(crate) fn connect(&self) -> Result<TcpStream> {
        let Other::Connect(peer) = self.other else { bail!("there is no peer to connect to") };
        self.connect_to(peer).with_context(|| format!("cannot connect to {peer}"))
    }

    fn connect_to(&self, peer: SocketAddr) -> Result<TcpStream> {
        let stream = self.host.handle().connect_nonblocking(peer)?;
        let begun = Instant::now();
        while !stream.is_connected()? {
            if self.is_over() {
                bail!("interrupted");
            }
            if begun.elapsed() > CONNECT_TIMEOUT {
                bail!("nobody answers; check the address, and that the peer has a route back");
            }
            wait_for(&stream)?;
        }
        stream.set_nonblocking(false)?;
        limit_waits(&stream)?;
        Ok(stream)
    }

    /// Stops the host; returns its counters.
    ///
    /// # Errors
    /// The failure of its device, if that ended it before.
    pub(crate) fn finish(self) -> Result<Outcome> {
        let mut outcome = self.host.stop();
        std::mem::replace(&mut outcome.result, Ok(()))?;
        Ok(outcome)
    }
}

/// Waits until everything was acknowledged, the FIN included; only then may the host end. Drops what the
/// peer still sends. Gives up when the peer acknowledges nothing for [`SETTLE_TIMEOUT`].
///
/// # Errors
/// If the peer did not get everything: the connection failed, the time was up, or a signal came.
pub(crate) fn settle(endpoint: &Endpoint, stream: &TcpStream) -> Result<()> {
    let (mut left, mut since) = (unacknowledged(stream), Instant::now());
    let mut is_peer_done = false;
    loop {
        // A failed connection has nothing left to send, so failure is checked before and after.
        refuse_failed(stream)?;
        let (is_over, now_left) = (is_closed(stream), unacknowledged(stream));
        // A reset after all data leaves the FIN unacknowledged.
        if now_left == 0 || is_over && now_left == 1 {
            return refuse_failed(stream);
        }
        if is_over {
            let text =
                format!("the connection has ended before the peer had the last {now_left} bytes");
            return Err(partial(text));
        }
        if now_left != left {
            (left, since) = (now_left, Instant::now());
        }
        if endpoint.is_over() {
            return Err(partial(format!("interrupted before the peer had the last {left} bytes")));
        }
        if since.elapsed() >= SETTLE_TIMEOUT {
            let seconds = SETTLE_TIMEOUT.as_secs();
            let text =
                format!("the peer has not acknowledged the last {left} bytes for {seconds} s");
            return Err(partial(text));
        }
        is_peer_done = is_peer_done || drop_some(stream);
        if is_peer_done {
            // The peer has closed: a read would return at once.
            wait_readable(&[], Some(TINY))?;
        }
    }
}

/// Bytes that were written and not acknowledged; the FIN counts as one.
fn unacknowledged(stream: &TcpStream) -> u32 {
    let seen = stream.statistics();
    (seen.snd_nxt - seen.snd_una).unsigned_abs() + seen.unsent
}

/// Whether the connection is closed.
fn is_closed(stream: &TcpStream) -> bool {
    stream.is_connected().is_err()
}

/// An error if the connection has failed: what it still had to send is lost.
fn refuse_failed(stream: &TcpStream) -> Result<()> {
    match stream.take_error()? {
        Some(error) => Err(incomplete("the peer did not get all that was sent", &error)),
        None => Ok(()),
    }
}

/// Drops what the peer sends, for a moment. Returns whether the peer or the connection has closed.
fn drop_some(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0; 4_096]) {
        Ok(read) => read == 0,
        Err(error) => !is_wait(&error),
    }
}

/// The error of a connection that failed half way, so that one end misses a part. The cause becomes
/// text: a peer that closed must not be taken for a closed reader of our own output.
pub(crate) fn incomplete(what: &str, error: &io::Error) -> Error {
    partial(format!("{what}: {error}"))
}

/// Whether a call only timed out.
pub(crate) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Timeout of calls on a stream, short enough to notice a request to stop.
fn limit_waits(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(SHORT))?;
    stream.set_write_timeout(Some(SHORT))?;
    Ok(())
}

fn wait_for(stream: &TcpStream) -> Result<()> {
    wait_readable(&[stream.as_fd()], Some(SHORT))?;
    Ok(())
}

const BACKLOG: usize = 1_024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A peer may pause. Long enough for several retransmissions of the same segment.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);
const TINY: Duration = Duration::from_millis(1);
