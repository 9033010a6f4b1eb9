//! Opens connections, and stops waiting for them when the user requests the end.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use rxo::live::host::{self, Listeners, Outcome};
use rxo_driver::wait::wait_readable;
use rxo_host::{Handle, TcpStream};

use super::EndpointPlan;
use super::plan::Other;
use crate::exit::partial;
use crate::hosting::Running;
use crate::stop;

/// A running host that opens the connections of one command.
pub(crate) struct Endpoint {
    host: Running,
    other: Other,
    stop: Arc<AtomicBool>,
}

/// The state of a connection that is being opened.
#[derive(Debug)]
pub(crate) struct Opening {
    peer: SocketAddr,
    begun: Instant,
}

impl Endpoint {
    /// Starts the host. From then on, a signal sets a flag instead of ending the process.
    ///
    /// # Errors
    /// If the device cannot be opened, or does not fit the host.
    pub(crate) fn start(plan: &EndpointPlan) -> Result<Self> {
        let stop = stop::on_request()?;
        let host = plan.host.start_with(Vec::new(), |config| plan.configure(config))?;
        Ok(Self { host, other: plan.other.clone(), stop })
    }

    /// Returns the running host.
    pub(crate) const fn host(&self) -> &Running {
        &self.host
    }

    /// Returns `true` if a signal has arrived, or the host has ended.
    pub(crate) fn should_stop(&self) -> bool {
        self.is_signalled() || !self.host.is_running()
    }

    /// Returns the flag that is set when the user requests the end.
    pub(crate) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns `true` if a signal has arrived.
    pub(crate) fn is_signalled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Opens one connection: connects or accepts, as planned.
    ///
    /// # Errors
    /// If the connection cannot be opened, or a signal arrived first.
    pub(crate) fn one(&self) -> Result<TcpStream> {
        let handle = self.host.handle();
        match &self.listen(&handle)? {
            Some(listeners) => {
                self.accept(listeners)?.context("interrupted while waiting for a peer")
            }
            None => self.connect(&handle),
        }
    }

    /// Returns `true` if this side accepts connections.
    pub(crate) const fn accepts(&self) -> bool {
        matches!(self.other, Other::Listen(_))
    }

    /// Listens on `handle`, which is the handle of the whole host or of one worker. Returns `None` if this
    /// side connects instead.
    ///
    /// # Errors
    /// If the port is in use.
    pub(crate) fn listen(&self, handle: &Handle) -> Result<Option<Listeners>> {
        let Other::Listen(addresses) = &self.other else { return Ok(None) };
        let addresses = addresses.iter().copied();
        Ok(Some(Listeners::open(handle, addresses, BACKLOG)?))
    }

    /// Accepts the next peer; `None` if a signal arrived first.
    ///
    /// # Errors
    /// If the host has ended.
    pub(crate) fn accept(&self, listeners: &Listeners) -> Result<Option<TcpStream>> {
        while !self.should_stop() {
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
    /// If the peer refuses, does not answer in time, or a signal arrived first.
    fn connect(&self, handle: &Handle) -> Result<TcpStream> {
        let (stream, opening) = self.begin_to_connect(handle)?;
        while !opening.is_connected(&stream)? {
            if self.should_stop() {
                bail!("{}: interrupted", cannot_connect(opening.peer));
            }
            wait_readable(&[stream.as_fd()], Some(SHORT))?;
        }
        limit_waits(&stream)?;
        Ok(stream)
    }

    /// Begins to connect to the peer through `handle`, without waiting for the peer's answer.
    ///
    /// # Errors
    /// If there is no peer, no route to the peer, or no memory for the connection.
    pub(crate) fn begin_to_connect(&self, handle: &Handle) -> Result<(TcpStream, Opening)> {
        let Other::Connect(peer) = self.other else { bail!("there is no peer to connect to") };
        let stream = handle.connect_nonblocking(peer);
        let stream = stream.with_context(|| cannot_connect(peer))?;
        Ok((stream, Opening { peer, begun: Instant::now() }))
    }

    /// Stops the host; returns its counters.
    ///
    /// # Errors
    /// The failure of the host's device, if that ended the host earlier.
    pub(crate) fn finish(self) -> Result<Outcome> {
        self.host.finish(&self.stop)
    }

    /// Stops the host. Returns its counters, and the failure of its device if that ended the host earlier.
    pub(crate) fn end(self) -> (Outcome, Result<()>) {
        self.host.end(&self.stop)
    }
}

impl Opening {
    /// Returns `true` if `stream` is connected; `false` while the peer has yet to answer.
    ///
    /// # Errors
    /// If the peer refuses, or has not answered in time.
    pub(crate) fn is_connected(&self, stream: &TcpStream) -> Result<bool> {
        let Self { peer, begun } = *self;
        let is_open = stream.is_connected().with_context(|| cannot_connect(peer))?;
        if !is_open && begun.elapsed() > CONNECT_TIMEOUT {
            bail!(
                "{}: nobody answers; check the address, and that the peer has a route back",
                cannot_connect(peer)
            );
        }
        Ok(is_open)
    }
}

fn cannot_connect(peer: SocketAddr) -> String {
    format!("cannot connect to {peer}")
}

/// Waits until the peer has received everything, including the FIN.
///
/// # Errors
/// If the peer has not received everything: the connection failed, the time was up, or a signal arrived.
pub(crate) fn wait_until_delivered(endpoint: &Endpoint, stream: &TcpStream) -> Result<()> {
    host::wait_until_delivered(stream, || endpoint.should_stop())
        .map_err(|error| partial(error.to_string()))
}

/// Creates the error of a connection that failed before one end had received all data. The cause is stored as a
/// string and not as an error, because a connection closed by the peer would otherwise be treated like a closed
/// standard output.
pub(crate) fn incomplete(what: &str, error: &io::Error) -> Error {
    partial(format!("{what}: {error}"))
}

/// Returns `true` if `error` means only that a call timed out.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Sets a timeout for calls on a stream, short enough to notice a request to stop.
fn limit_waits(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(SHORT))?;
    stream.set_write_timeout(Some(SHORT))?;
    Ok(())
}

const BACKLOG: usize = 1_024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(50);
