//! The network card: `rxo card` on a thread of this process, between the lab's wire and the ring of a host.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rxo::live::{Card, Device, DeviceOptions, Event, Outcome, run_card};
use rxo_driver::GuestOptions;
use rxo_lab::Lab;

/// `rxo card` on a thread, on the sender's core. Dropping it stops it.
pub(super) struct CardThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<rxo_lab::Result<Result<Outcome>>>>,
}

impl CardThread {
    pub(super) fn start(lab: &Lab, socket: PathBuf, core: Option<usize>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, wait) = std::sync::mpsc::channel();
        let seen = Arc::clone(&stop);
        let thread = lab.host().spawn("rxo-card", move || {
            if let Some(core) = core {
                rxo_lab::pin_to_core(core)?;
            }
            let devices = open(&socket)?;
            // The receiver is gone only when the command is at its end.
            _ = ready.send(());
            let card = Card { validates: true, expands: true, report_every: None };
            // Its only notices are that the receiver has come and gone.
            Ok(run_card(devices, card, &seen, |_: Event<'_>| {})?)
        })?;
        let card = Self { stop, thread: Some(thread) };
        if wait.recv().is_err() {
            return Err(card.finish().err().unwrap_or_else(|| anyhow!("the card did not start")));
        }
        Ok(card)
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("the card has ended before")?;
        let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(ended??.result?)
    }
}

impl Drop for CardThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // After a failure elsewhere, which is reported; this one no longer matters.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

fn open(socket: &Path) -> Result<(Device, Device)> {
    let guest = GuestOptions {
        aggregates: false,
        ack_templates: true,
        moderation: MODERATION,
        ..GuestOptions::default()
    };
    let options = DeviceOptions { bring_up: true, guest, ..DeviceOptions::default() };
    let wire = format!("packet:{}", Lab::WIRE_INTERFACE).parse()?;
    let ring = format!("vhost:{}", socket.display()).parse()?;
    Ok((Device::open(&wire, options)?, Device::open(&ring, options)?))
}

/// As `rx-usecs` of a card.
pub(super) const MODERATION: Duration = Duration::from_micros(50);
