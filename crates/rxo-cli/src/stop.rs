//! Being told to end: Ctrl-C, `kill`, or the terminal going away.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that is set when the user wants an end. Asked a second time, the process ends at once:
/// the kernel then takes devices back.
///
/// # Errors
/// When the system does not let us know.
pub(crate) fn on_request() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first time finds the flag not set yet.
        flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .with_context(|| format!("cannot wait for signal {signal}"))?;
    }
    Ok(stop)
}
