//! Opening connections, while watching whether to stop.

use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo::live::host::{Outcome, RunningHost};
use rxo_driver::wait::wait_readable;
use rxo_host::{TcpListener, TcpStream};

use super::EndpointPlan;
use super::plan::Other;
use crate::stop;

/// A host that runs.
pub(crate) struct Endpoint {
    host: RunningHost,
    other: Other,
    stop: Arc<AtomicBool>,
}

/// Where peers come in.
pub(crate) struct Listening(Vec<TcpListener>);

impl Endpoint {
    /// Starts the host. From here on a signal asks for an end instead of making one.
    ///
    /// # Errors
    /// When the device cannot be opened, or the host cannot be on it.
    pub(crate) fn start(plan: &EndpointPlan) -> Result<Self> {
        let stop = stop::on_request()?;
        let host = plan.host.start_with(|config| plan.configure(config))?;
        Ok(Self { host, other: plan.other.clone(), stop })
    }

    /// Whether somebody wants an end, or the host has come to one.
    pub(crate) fn is_over(&self) -> bool {
        self.was_asked() || !self.host.is_running()
    }

    /// Whether a signal has come.
    pub(crate) fn was_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// One connection, in the way of the plan.
    ///
    /// # Errors
    /// When it cannot be opened, or the end came first.
    pub(crate) fn one(&self) -> Result<TcpStream> {
        match &self.listen()? {
            Some(listening) => {
                listening.accept(self)?.context("interrupted while waiting for a peer")
            }
            None => self.connect(),
        }
    }

    /// Where peers come in; `None` when this side connects.
    ///
    /// # Errors
    /// When the port is taken.
    pub(crate) fn listen(&self) -> Result<Option<Listening>> {
        let Other::Listen(addresses) = &self.other else { return Ok(None) };
        let listeners = addresses.iter().map(|&address| self.listen_on(address));
        listeners.collect::<Result<_>>().map(|all| Some(Listening(all)))
    }

    fn listen_on(&self, address: SocketAddr) -> Result<TcpListener> {
        let listener = self.host.handle().listen(address, BACKLOG);
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// A connection to the peer.
    ///
    /// # Errors
    /// When it refuses, does not answer in time, or the end came first.
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

    /// Stops the host; says what it counted.
    ///
    /// # Errors
    /// The failure of its device, if that ended it before.
    pub(crate) fn finish(self) -> Result<Outcome> {
        let mut outcome = self.host.stop();
        std::mem::replace(&mut outcome.result, Ok(()))?;
        Ok(outcome)
    }
}

impl Listening {
    /// The next peer; `None` when the end comes first.
    ///
    /// # Errors
    /// When the host is gone.
    pub(crate) fn accept(&self, endpoint: &Endpoint) -> Result<Option<TcpStream>> {
        while !endpoint.is_over() {
            for listener in &self.0 {
                match listener.accept() {
                    Ok((stream, _)) => {
                        limit_waits(&stream)?;
                        return Ok(Some(stream));
                    }
                    Err(error) if is_wait(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let descriptors: Vec<_> = self.0.iter().map(AsFd::as_fd).collect();
            wait_readable(&descriptors, Some(SHORT))?;
        }
        Ok(None)
    }
}

/// Waits until all that was sent has been acknowledged, the FIN included: only then may the host go. A
/// peer that does not answer for long is not waited for.
///
/// # Errors
/// When the connection fails.
pub(crate) fn settle(endpoint: &Endpoint, mut stream: &TcpStream) -> Result<()> {
    let begun = Instant::now();
    let mut rest = [0; 4_096];
    let mut is_peer_done = false;
    while !endpoint.is_over() && begun.elapsed() < SETTLE_TIMEOUT {
        let seen = stream.statistics();
        if seen.snd_una == seen.snd_nxt && seen.unsent == 0 {
            return Ok(());
        }
        if is_peer_done {
            // Reading would not wait any more.
            wait_readable(&[], Some(TINY))?;
            continue;
        }
        match stream.read(&mut rest) {
            Ok(0) => is_peer_done = true,
            Ok(_) => {}
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether a call only says that it would have waited longer.
pub(crate) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Calls on the stream come back soon enough to see that the end is wanted.
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
/// As long as Linux's peers take at most to acknowledge again what was lost a few times.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(50);
const TINY: Duration = Duration::from_millis(1);
