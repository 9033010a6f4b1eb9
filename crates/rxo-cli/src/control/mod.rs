//! `--control SOCKET`: what a running command can be asked, and its answers.
//!
//! A command makes a [`Process`] of what it has: counters, engines, connections, an interval. The [`requests`] are a
//! file each, and answer from those parts; they know no command. [`rxo_control`] has the lines, the clients and their
//! bounds, on a thread of its own. Whatever needs the worker is asked at its desk, between two turns.

mod interval;
mod process;
mod requests;

use std::path::Path;

use anyhow::{Context, Result};
use rxo_control::Server;
use rxo_driver::{Access, Listener};

pub(crate) use self::interval::Interval;
pub(crate) use self::process::{
    EngineState, Engines, NEXT_TURN, Process, Reload, Stats, host_process,
};
pub(crate) use rxo_control::Refusal;

/// A socket that is served until this is dropped; then its file is removed.
#[derive(Debug)]
pub(crate) struct Control {
    /// Before the listener: while its file is there, somebody answers.
    _server: Server,
    _listener: Listener,
}

/// Binds the socket of `--control`, if it was given. From now on clients wait until it is served.
///
/// # Errors
/// If another process listens there, or the path cannot be bound.
pub(crate) fn bind(path: Option<&Path>) -> Result<Option<Listener>> {
    let bind = |path: &Path| Listener::bind(&label(path), path, Access::OwnerOnly);
    Ok(path.map(bind).transpose()?)
}

/// Looks whether the socket could be bound.
///
/// # Errors
/// As [`bind`].
pub(crate) fn check(path: Option<&Path>) -> Result<()> {
    Ok(path.map_or(Ok(()), |path| Listener::check(&label(path), path))?)
}

/// Answers the clients of `listener` about `process`.
///
/// # Errors
/// If the system gives no thread.
pub(crate) fn serve(listener: Option<Listener>, process: Process) -> Result<Option<Control>> {
    let serve = |listener: Listener| {
        let socket = listener.socket().context("--control")?;
        let answer = move |line: &[u8]| requests::MENU.answer(&process, line);
        let server = Server::start(socket, answer).context("cannot serve --control")?;
        Ok(Control { _server: server, _listener: listener })
    };
    listener.map(serve).transpose()
}

fn label(path: &Path) -> String {
    format!("--control {}", path.display())
}
