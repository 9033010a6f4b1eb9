//! A thread of the lab: optionally pinned, identified by its thread id, with a result at the end.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crate::error::{Context, LabError, Result};
use crate::sys;

/// A running thread of the lab.
#[derive(Debug)]
pub struct Worker<T> {
    thread: JoinHandle<Result<T>>,
    thread_id: u32,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts `work` on a thread of its own, pinned to `core` if given.
    pub fn start(
        name: &str,
        core: Option<usize>,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let pinned = core.map_or(Ok(()), sys::pin_to_core);
                let started = pinned.map(|()| sys::thread_id());
                let goes_on = started.is_ok();
                match sender.send(started) {
                    Ok(()) if goes_on => work(),
                    _ => Err(ended("of the lab")),
                }
            })
            .context(|| format!("cannot start the thread {name}"))?;
        let started = receiver.recv().map_err(|_| ended(name))?;
        let thread_id = started.context(|| cannot_pin(name, core))?;
        Ok(Self { thread, thread_id })
    }

    /// Returns the system's id of the thread.
    pub fn thread_id(&self) -> u32 {
        self.thread_id
    }

    /// Waits until the thread has ended, and returns its result.
    pub fn finish(self) -> Result<T> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Pins the calling thread to one core.
///
/// # Errors
/// If there is no such core, or this process may not use it.
pub fn pin_to_core(core: usize) -> Result<()> {
    let name = thread::current().name().unwrap_or("main").to_owned();
    sys::pin_to_core(core).context(|| cannot_pin(&name, Some(core)))
}

/// Returns the system's id of the calling thread, for [`CpuMeter::threads`](crate::CpuMeter::threads).
#[must_use]
pub fn thread_id() -> u32 {
    sys::thread_id()
}

fn ended(name: &str) -> LabError {
    LabError::Transfer(format!("the thread {name} ended before it began"))
}

fn cannot_pin(name: &str, core: Option<usize>) -> String {
    let core = core.unwrap_or_default();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    format!("cannot keep the thread {name} on core {core}; this process may use {cores} cores")
}
