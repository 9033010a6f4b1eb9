//! Being told to end: Ctrl-C, `kill`, or the terminal going away.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::{flag, low_level};

/// A flag that is set when the user wants an end. Asked a second time, the process ends at once:
/// the kernel then takes devices back.
///
/// # Errors
/// If the system does not let us know.
pub(crate) fn on_request() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        // In this order: the first time finds the flag not set yet.
        flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .with_context(|| format!("cannot wait for signal {signal}"))?;
    }
    Ok(stop)
}

/// A flag that is set when the user wants an end, however often he asks: another process decides
/// whether this one ends at once. Nor is it stopped by Ctrl-Z, which reaches both.
///
/// # Errors
/// If the system does not let us know.
pub(crate) fn on_any_request() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        flag::register(signal, Arc::clone(&stop))
            .with_context(|| format!("cannot wait for signal {signal}"))?;
    }
    flag::register(SIGTSTP, Arc::new(AtomicBool::new(false)))
        .context("cannot keep Ctrl-Z from stopping the worker")?;
    Ok(stop)
}

/// The user's requests for an end, to be counted, by one who waits for other things as well.
#[derive(Debug)]
pub(crate) struct Requests {
    signals: UnixStream,
}

impl Requests {
    /// From here on a signal is a request instead of an end.
    ///
    /// # Errors
    /// If the system does not let us know.
    pub(crate) fn begin() -> Result<Self> {
        let (signals, sender) = UnixStream::pair()?;
        signals.set_nonblocking(true)?;
        for signal in SIGNALS {
            low_level::pipe::register(signal, sender.try_clone()?)
                .with_context(|| format!("cannot wait for signal {signal}"))?;
        }
        Ok(Self { signals })
    }

    /// How many came since this was asked last.
    pub(crate) fn take(&mut self) -> usize {
        let mut bytes = [0; 16];
        // There is none, or more than anybody types.
        self.signals.read(&mut bytes).unwrap_or(0)
    }
}

impl AsFd for Requests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

/// Those that a terminal sends to every process in it are among them: left alone, Ctrl-\ would end both
/// processes of a run, and nobody would put anything back.
const SIGNALS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
