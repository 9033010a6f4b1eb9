//! rxo's worker as measurements run it: on a thread in the host's network, on the receiver's core.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use rxo::live::{Device, DeviceOptions, Event, Middleware, Outcome};
use rxo::{LinkKind, Reading, WorkerConfig};
use rxo_coalesce::Policy;
use rxo_device::middleware::{Impairment, ImpairmentSettings};
use rxo_driver::SubmitMode;
use rxo_lab::Lab;

/// The TAP that stands for the host's interface.
pub(crate) const TAP: &str = "rxo0";

/// A running worker. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct Through {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<rxo_lab::Result<Result<Outcome>>>>,
}

/// What distinguishes ways through rxo.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) policy: Policy,
    pub(crate) submit: SubmitMode,
    /// What the TAP gets; `None` is what it has from the kernel, 1,500 bytes.
    pub(crate) mtu: Option<u32>,
    /// An ACK for so many full segments where the host acknowledges more at once; `None` leaves its
    /// ACKs as they are.
    pub(crate) ack_split: Option<u16>,
    /// The worse network from the wire to the engine, and the one from the host to the worker;
    /// `None` for nothing between them at all. A network segments GSO frames that cross it.
    pub(crate) impair: [Option<ImpairmentSettings>; 2],
}

impl Manner {
    /// With this policy, writing in batches.
    pub(crate) const fn with(policy: Policy) -> Self {
        Self { policy, submit: SubmitMode::Auto, mtu: None, ack_split: None, impair: [None; 2] }
    }

    /// Sets the MTU of the TAP to `bytes`.
    pub(crate) const fn mtu(self, bytes: u32) -> Self {
        Self { mtu: Some(bytes), ..self }
    }
}

impl Through {
    /// Starts a worker between the lab's wire and a TAP, and gives the TAP the host's address.
    ///
    /// # Errors
    /// If a device cannot be opened.
    pub(crate) fn start(lab: &Lab, manner: Manner, core: Option<usize>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, wait) = std::sync::mpsc::channel();
        let seen = Arc::clone(&stop);
        let thread = lab.host().spawn("rxo", move || {
            if let Some(core) = core {
                rxo_lab::pin_to_core(core)?;
            }
            let (nic, host) = open(manner)?;
            // The receiver is gone only when the command is at its end.
            _ = ready.send(());
            let ack_split = manner.ack_split;
            let config = WorkerConfig { ack_split, ..WorkerConfig::new(manner.policy) };
            let observe = |event: Event<'_>| say(&event);
            if manner.impair == [None; 2] {
                return Ok(rxo::live::run(nic, host, config, &seen, observe)?);
            }
            let middleware = middleware(manner.impair)?;
            Ok(rxo::live::run_through((nic, host), middleware, config, &seen, observe)?)
        })?;
        let through = Self { stop, thread: Some(thread) };
        if wait.recv().is_err() {
            return Err(through.finish().err().unwrap_or_else(|| anyhow!("rxo did not start")));
        }
        lab.attach_host(TAP)?;
        Ok(through)
    }

    /// Stops it and gives its totals.
    ///
    /// # Errors
    /// What ended it, if it was not this.
    pub(crate) fn finish(mut self) -> Result<Reading> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("rxo has ended before")?;
        let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let outcome = ended??;
        outcome.result?;
        Ok(outcome.totals)
    }
}

impl Drop for Through {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // After a failure elsewhere, which is reported; this one no longer matters.
        _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

fn open(manner: Manner) -> Result<(Device, Device)> {
    let options = DeviceOptions {
        submit: manner.submit,
        mtu: manner.mtu,
        bring_up: true,
        ..DeviceOptions::default()
    };
    let wire = format!("packet:{}", Lab::WIRE_INTERFACE).parse()?;
    let tap = format!("tap:{TAP}").parse()?;
    Ok((Device::open(&wire, options)?, Device::open(&tap, options)?))
}

fn middleware([to_host, back]: [Option<ImpairmentSettings>; 2]) -> Result<Middleware> {
    let made = |settings| Impairment::new(settings, LinkKind::Ethernet);
    Ok(Middleware {
        impair_nic: to_host.map(made).transpose()?,
        impair_host: back.map(made).transpose()?,
        ..Middleware::default()
    })
}

fn say(event: &Event<'_>) {
    if let Event::Notice(line) = event {
        rxo_console::output::note(line);
    }
}
