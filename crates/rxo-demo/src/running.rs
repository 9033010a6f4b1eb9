//! Something of rxo's at work, as measurements run it: on a thread in the lab's host namespace, with a flag that
//! stops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use rxo::live::{Device, DeviceOptions};
use rxo_testbed::Lab;

/// A thread at work, which ends with its totals. Dropping it stops it.
#[derive(Debug)]
pub struct Running<T> {
    name: &'static str,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<rxo_testbed::Result<Result<T>>>>,
}

impl<T: Send + 'static> Running<T> {
    /// Starts `work` on `core`, and returns when it is ready. It is given the flag that stops it, and a function to
    /// call when it is ready.
    ///
    /// # Errors
    /// If the thread cannot be started, or `work` fails before it is ready.
    pub fn start(
        lab: &Lab,
        (name, core): (&'static str, Option<usize>),
        work: impl FnOnce(&AtomicBool, &dyn Fn()) -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let (ready, is_ready) = mpsc::channel();
        let thread = lab.host().spawn(name, move || {
            if let Some(core) = core {
                rxo_testbed::pin_to_core(core)?;
            }
            // The receiver is gone only when the command is at its end.
            work(&seen, &|| _ = ready.send(()))
        })?;
        let running = Self { name, stop, thread: Some(thread) };
        if is_ready.recv().is_err() {
            return Err(running.finish().err().unwrap_or_else(|| anyhow!("{name} did not start")));
        }
        Ok(running)
    }

    /// Stops it and gives its totals.
    ///
    /// # Errors
    /// What ended it, if it was not this.
    pub fn finish(mut self) -> Result<T> {
        self.stop.store(true, Ordering::Relaxed);
        let name = self.name;
        let thread = self.thread.take().with_context(|| format!("{name} has ended before"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // After a failure elsewhere, which is reported; this one no longer matters.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The end of the lab's wire.
///
/// # Errors
/// If it cannot be opened.
pub fn wire(options: DeviceOptions) -> Result<Device> {
    Ok(Device::open(&format!("packet:{}", Lab::WIRE_INTERFACE).parse()?, options)?)
}
