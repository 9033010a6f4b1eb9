//! rxo between the lab's wire and guests, on a thread of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use rxo::device::Pause;
use rxo::live::{Device, DeviceOptions};
use rxo::switch::{PortSettings, Switch, SwitchOptions, Vlans};
use rxo::worker::GuestsReading;
use rxo::{Reading, WorkerConfig};
use rxo_driver::GuestOptions;
use rxo_lab::Lab;

use crate::xen::portions::Portions;
use crate::xen::system::System;
use crate::xen::traffic::Polls;

/// A driver domain at work, which ends with its totals. Dropping it stops it.
pub(super) struct Running<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<rxo_lab::Result<Result<T>>>>,
}

impl Running<Reading> {
    /// For one guest, with polls of so many frames at most.
    pub(super) fn polling(
        lab: &Lab,
        system: System,
        frames_a_poll: f64,
        socket: &Path,
    ) -> Result<Self> {
        let socket = socket.to_owned();
        Self::start(lab, move |stop, ready| {
            let (guest, Device { source, sink }) = (card(system, &socket)?, wire()?);
            ready();
            let source = Box::new(Portions::new(source, Polls::new(frames_a_poll)));
            let config = WorkerConfig {
                budget_frames: frames_a_poll.ceil() as usize,
                pause: Pause::NEVER,
                overload: None,
                ..WorkerConfig::new(system.policy())
            };
            let outcome = rxo::live::run(Device { source, sink }, guest, config, stop, |_| ())?;
            outcome.result?;
            Ok(outcome.totals)
        })
    }
}

impl Running<GuestsReading> {
    /// For a guest on each of `sockets`, behind one switch, with polls as `rxo guest` has them.
    pub(super) fn switching(lab: &Lab, system: System, sockets: &[PathBuf]) -> Result<Self> {
        let sockets = sockets.to_vec();
        Self::start(lab, move |stop, ready| {
            let guests = sockets.iter().map(|socket| card(system, socket));
            let (guests, nic) = (guests.collect::<Result<Vec<_>>>()?, wire()?);
            ready();
            let ports = vec![PortSettings { vlans: Vlans::Only(0), fixed: None }; 1 + guests.len()];
            let switch = Switch::new(ports, SwitchOptions::default())?;
            let config = WorkerConfig::new(system.policy());
            let outcome = rxo::live::run_guests(nic, guests, (switch, config), stop, |_| ())?;
            outcome.result?;
            Ok(outcome.totals)
        })
    }
}

impl<T: Send + 'static> Running<T> {
    /// Starts `work`, which is given what stops it and what to call once guests can connect.
    fn start(
        lab: &Lab,
        work: impl FnOnce(&AtomicBool, &dyn Fn()) -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let (ready, is_ready) = mpsc::channel();
        let thread = lab.host().spawn("rxo", move || {
            // The receiver is gone only when the command is at its end.
            work(&seen, &|| _ = ready.send(()))
        })?;
        let running = Self { stop, thread: Some(thread) };
        if is_ready.recv().is_err() {
            return Err(running.finish().err().unwrap_or_else(|| anyhow!("rxo did not start")));
        }
        Ok(running)
    }

    /// Stops it and gives its totals.
    pub(super) fn finish(mut self) -> Result<T> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("rxo has ended before")?;
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

/// The card of a guest.
fn card(system: System, socket: &Path) -> Result<Device> {
    let guest = GuestOptions { path: system.path(), ..GuestOptions::default() };
    let options = DeviceOptions { guest, ..DeviceOptions::default() };
    Ok(Device::open(&format!("vhost:{}", socket.display()).parse()?, options)?)
}

/// The end of the lab's wire.
fn wire() -> Result<Device> {
    let name = format!("packet:{}", Lab::WIRE_INTERFACE).parse()?;
    Ok(Device::open(&name, DeviceOptions::default())?)
}
