//! `--control SOCKET`: the requests that a running command answers. Its counters are also the [`metrics`].
//!
//! A command makes a [`Process`] of its parts: counters, engines, connections, the interval of its figures.
//! Each of the [`requests`] has its own file and uses only those parts, so it works with any command.
//! [`rxo_control`] serves the clients, within its limits, on its own thread. If a request needs the worker,
//! the worker answers it between two turns of its loop.

mod interval;
mod process;
mod requests;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rxo_control::Server;
use rxo_driver::succession::{Handed, HandedDevice};
use rxo_driver::{Access, Listener};

pub(crate) use self::interval::Interval;
pub(crate) use self::process::{
    EngineState, Engines, NEXT_TURN, Process, Reload, Stats, host_counters, host_process,
};
use crate::flags::{ControlFlags, HostFlags, MetricsFlags};
pub(crate) use crate::metrics::Counters;
use crate::metrics::{self, Address, Metrics, MetricsListener};
use crate::sandbox::with_files_removed;
pub(crate) use rxo_control::Refusal;

/// The addresses of the sockets that `--control` and `--metrics` name; each `None` without the flag.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlAddresses {
    pub(crate) control: Option<PathBuf>,
    pub(crate) metrics: Option<Address>,
}

/// The name of the control socket among the sockets that a process hands over to another.
const CONTROL: &str = "--control";
const METRICS: &str = "--metrics";

/// The sockets for control and metrics, bound but not served yet.
#[derive(Debug)]
pub(crate) struct Sockets {
    control: Option<Listener>,
    metrics: Option<MetricsListener>,
}

/// The sockets for control and metrics while a process serves them. Dropping the value removes the files of the
/// unix sockets.
#[derive(Debug)]
pub(crate) struct Served {
    _control: Option<Control>,
    _metrics: Option<Metrics>,
}

#[derive(Debug)]
struct Control {
    /// The server that answers requests. This field is declared before the listener, so that it is dropped
    /// first: as long as the socket's file exists, the process answers.
    _server: Server,
    _listener: Listener,
}

impl ControlAddresses {
    /// Returns the addresses of the sockets that `flags` name.
    ///
    /// # Errors
    /// If an address is invalid; the message describes valid values.
    pub(crate) fn from_flags(flags: &ControlFlags) -> Result<Self> {
        let of_metrics = Self::of_metrics(&flags.metrics)?;
        Ok(Self { control: flags.control.clone(), ..of_metrics })
    }

    /// Returns the address of the metrics socket that `flags` name, for a command that answers no requests.
    ///
    /// # Errors
    /// If the address is invalid; the message describes valid values.
    pub(crate) fn of_metrics(flags: &MetricsFlags) -> Result<Self> {
        let metrics = flags.metrics.as_deref().map(str::parse).transpose()?;
        Ok(Self { control: None, metrics })
    }

    /// Binds the sockets. Clients can connect from then on, and wait until they are served.
    ///
    /// # Errors
    /// If another process listens there, or a socket cannot be bound.
    pub(crate) fn bind(&self) -> Result<Sockets> {
        let bind = |path: &PathBuf| Listener::bind(&label(path), path, Access::OwnerOnly);
        let control = self.control.as_ref().map(bind).transpose()?;
        Ok(Sockets { control, metrics: self.metrics.as_ref().map(Address::bind).transpose()? })
    }

    /// Uses the sockets that another process hands over, and binds the sockets that the other process does not
    /// hand over.
    ///
    /// # Errors
    /// The errors of [`ControlAddresses::bind`].
    pub(crate) fn inherit(&self, mut take: impl FnMut(&str) -> Option<OwnedFd>) -> Result<Sockets> {
        let control = self.control.as_ref().and_then(|path| Some((path, take(CONTROL)?)));
        let metrics = self.metrics.as_ref().and_then(|address| Some((address, take(METRICS)?)));
        let bound = Self {
            control: self.control.clone().filter(|_| control.is_none()),
            metrics: self.metrics.clone().filter(|_| metrics.is_none()),
        };
        let Sockets { control: other_control, metrics: other_metrics } = bound.bind()?;
        let control = control.map(|(path, file)| Listener::inherit(file, path)).or(other_control);
        let metrics = metrics.map(|(address, file)| address.inherit(file)).or(other_metrics);
        Ok(Sockets { control, metrics })
    }

    /// Returns the paths of the files of those sockets that are unix sockets.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let metrics = self.metrics.as_ref().and_then(Address::path);
        self.control.as_deref().into_iter().chain(metrics)
    }

    /// Checks that the sockets could be bound, without lasting changes.
    ///
    /// # Errors
    /// The errors of [`ControlAddresses::bind`].
    pub(crate) fn check(&self) -> Result<()> {
        let check = |path: &PathBuf| Listener::check(&label(path), path);
        self.control.as_ref().map_or(Ok(()), check)?;
        self.metrics.as_ref().map_or(Ok(()), Address::check)
    }
}

impl Sockets {
    /// Closes the sockets in this process. Their files stay, because another process of this run serves the sockets.
    pub(crate) fn leave(self) {
        self.control.into_iter().for_each(Listener::leave);
        self.metrics.into_iter().for_each(MetricsListener::leave);
    }

    /// Returns duplicates of the sockets' descriptors, with the names of the sockets, for a process that
    /// takes them over.
    ///
    /// # Errors
    /// If a descriptor cannot be copied.
    pub(crate) fn files(&self) -> io::Result<Vec<HandedDevice>> {
        let control = self.control.as_ref().map(|it| it.socket().map(OwnedFd::from)).transpose()?;
        let metrics = self.metrics.as_ref().map(MetricsListener::file).transpose()?;
        let named = [(CONTROL, control), (METRICS, metrics)];
        let legacy = |(name, file): (&str, Option<OwnedFd>)| {
            Some(HandedDevice { name: name.to_owned(), handed: Handed::of_files(vec![file?]) })
        };
        Ok(named.into_iter().filter_map(legacy).collect())
    }

    /// Starts to answer the clients of the sockets with the parts of `process`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn serve(self, process: Process) -> Result<Served> {
        let of_metrics = Self { control: None, metrics: self.metrics };
        let metrics = serve_metrics(of_metrics, process.command, &process.counters)?;
        let serve = |listener: Listener| -> Result<Control> {
            let socket = listener.socket().context("--control")?;
            let answer = move |line: &[u8]| requests::MENU.answer(&process, line);
            let server = Server::start(socket, answer).context("cannot serve --control")?;
            Ok(Control { _server: server, _listener: listener })
        };
        Ok(Served { _control: self.control.map(serve).transpose()?, _metrics: metrics })
    }
}

/// Runs `command`. After the command has ended in any way, removes the files of its sockets: the sockets of
/// `addresses`, and the socket of a device `vhost:PATH`.
///
/// # Errors
/// The errors of [`with_files_removed`].
pub(crate) fn with_sockets_removed(
    flags: &HostFlags,
    addresses: &ControlAddresses,
    command: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let guest = flags.nic.strip_prefix("vhost:").map(Path::new);
    with_files_removed(&flags.user, addresses.paths().chain(guest).collect(), command)
}

/// Starts to serve the counters of `command`, which has metrics but answers no requests.
///
/// # Errors
/// The errors of [`Sockets::serve`].
pub(crate) fn serve_metrics(
    sockets: Sockets,
    command: &'static str,
    counters: &Counters,
) -> Result<Option<Metrics>> {
    let serve = |listener| metrics::serve(listener, command, Arc::clone(counters));
    sockets.metrics.map(serve).transpose()
}

fn label(path: &Path) -> String {
    format!("--control {}", path.display())
}
