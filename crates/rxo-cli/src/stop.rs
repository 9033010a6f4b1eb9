//! Signals that request the end of a command: Ctrl-C, `kill`, or a closed terminal.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::{flag, low_level};

/// Returns a flag that is set by the first signal that requests the end. A second such signal ends the process at once;
/// the kernel then closes its devices.
///
/// # Errors
/// If the signals cannot be caught.
pub(crate) fn on_request() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals() {
        // The shutdown is registered first, so at the first signal it sees the flag still unset.
        flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .with_context(|| format!("cannot wait for signal {signal}"))?;
    }
    Ok(stop)
}

/// Returns a flag that is set by every signal that requests the end: another process decides whether this
/// process ends at once. Ctrl-Z, which reaches both processes, does not stop this process. If `reloads` is
/// `true`, SIGHUP does not set the flag, because the other process handles SIGHUP.
///
/// # Errors
/// If the signals cannot be caught.
pub(crate) fn on_any_request(reloads: bool) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals().filter(|signal| !reloads || *signal != SIGHUP) {
        flag::register(signal, Arc::clone(&stop))
            .with_context(|| format!("cannot wait for signal {signal}"))?;
    }
    for signal in [SIGTSTP].into_iter().chain(reloads.then_some(SIGHUP)) {
        flag::register(signal, Arc::new(AtomicBool::new(false)))
            .with_context(|| format!("cannot keep signal {signal} from the worker"))?;
    }
    Ok(stop)
}

/// Returns a stream from which one byte can be read for each later signal that requests the end. If `reloads` is
/// `true`, SIGHUP is not one of them.
///
/// # Errors
/// If the signals cannot be caught.
pub(crate) fn requests(reloads: bool) -> Result<UnixStream> {
    stream_of(signals().filter(|signal| !reloads || *signal != SIGHUP))
}

/// Returns a stream from which one byte can be read for each later SIGHUP; `None` under `nohup`, where SIGHUP is
/// ignored.
///
/// # Errors
/// If the signal cannot be caught.
pub(crate) fn hangups() -> Result<Option<UnixStream>> {
    let hangup = signals().find(|signal| *signal == SIGHUP);
    hangup.map(|signal| stream_of([signal])).transpose()
}

fn stream_of(signals: impl IntoIterator<Item = i32>) -> Result<UnixStream> {
    let (requests, sender) = UnixStream::pair()?;
    for signal in signals {
        low_level::pipe::register(signal, sender.try_clone()?)
            .with_context(|| format!("cannot wait for signal {signal}"))?;
    }
    Ok(requests)
}

/// Returns the signals that request the end of a command. SIGHUP is left out under `nohup`, which makes the process
/// ignore it from the start.
fn signals() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignores_hangup = ignores(&status, SIGHUP);
    SIGNALS.into_iter().filter(move |&signal| signal != SIGHUP || !ignores_hangup)
}

/// Returns `true` if the process whose `/proc/PID/status` is `status` ignores `signal`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Signals that request the end of a command. A terminal sends some of them to all its processes: if Ctrl-\ (SIGQUIT)
/// were not among them, it would end both processes of a run, and neither could restore the interfaces.
const SIGNALS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_ignored_is_found_in_the_status() {
        let status = "Name:\trxo\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000004002\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGINT) && !ignores("", SIGHUP));
    }
}
