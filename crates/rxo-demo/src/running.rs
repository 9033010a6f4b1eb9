//! Runs a part of rxo for a measurement: on a thread in the lab's host namespace, with a flag that stops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use rxo::live::{Device, DeviceOptions};
use rxo_testbed::Lab;

/// A thread of a measurement, which returns its totals when it ends. Dropping the value stops the thread.
#[derive(Debug)]
pub struct Running<T> {
    name: &'static str,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<rxo_testbed::Result<Result<T>>>>,
}

impl<T: Send + 'static> Running<T> {
    /// Starts `work` on `core`, and returns when `work` is ready. `work` receives the stop flag, and a
    /// function to call once it is ready.
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
            // Sending fails only if the command is already ending, so the result is ignored.
            work(&seen, &|| _ = ready.send(()))
        })?;
        let running = Self { name, stop, thread: Some(thread) };
        if is_ready.recv().is_err() {
            return Err(running.finish().err().unwrap_or_else(|| anyhow!("{name} did not start")));
        }
        Ok(running)
    }

    /// Stops the thread, waits until the thread has ended, and returns its totals.
    ///
    /// # Errors
    /// The error that ended the thread before it was stopped.
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
        // Reached only after another failure, which is reported, so the thread's own result is ignored.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Opens the interface at rxo's end of the lab's wire as a device.
///
/// # Errors
/// If the device cannot be opened.
pub fn wire(options: DeviceOptions) -> Result<Device> {
    Ok(Device::open(&format!("packet:{}", Lab::WIRE_INTERFACE).parse()?, options)?)
}
