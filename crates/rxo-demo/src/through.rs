//! Runs rxo's worker for a measurement: on a thread in the host's network namespace, on the receiver's core.

use anyhow::Result;
use rxo::live::{Device, DeviceOptions, Event, Middleware, Outcome, Station};
use rxo::{LinkKind, Reading, WorkerConfig};
use rxo_coalesce::Policy;
use rxo_device::middleware::{Impairment, ImpairmentSettings};
use rxo_driver::SubmitMode;
use rxo_testbed::Lab;

use crate::running::{Running, wire};

/// Name of the TAP that replaces the host's interface.
pub const TAP: &str = "rxo0";

/// The settings of rxo that differ between the measured paths.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The coalescing policy of rxo's engine.
    pub policy: Policy,
    /// The rule by which system calls write frames to the TAP: one call per frame, or batched.
    pub submit: SubmitMode,
    /// MTU of the TAP, in bytes; `None` keeps the kernel's default of 1,500.
    pub mtu: Option<u32>,
    /// Number of full-sized segments per ACK: if an ACK of the host covers more segments, the worker inserts ACKs
    /// before that ACK. `None` leaves the ACKs unchanged.
    pub ack_split: Option<u16>,
    /// Impairments of the network: first from the wire to the engine, then from the host to the worker; `None` for a
    /// direct link. An impairment segments the GSO frames that cross it.
    pub impair: [Option<ImpairmentSettings>; 2],
}

impl Manner {
    /// Returns settings with the coalescing `policy` and batched writes; everything else is off.
    pub const fn with(policy: Policy) -> Self {
        Self { policy, submit: SubmitMode::Auto, mtu: None, ack_split: None, impair: [None; 2] }
    }

    /// Returns the settings with an MTU of `bytes` for the TAP.
    pub const fn mtu(self, bytes: u32) -> Self {
        Self { mtu: Some(bytes), ..self }
    }
}

/// Starts a worker between the lab's wire and a TAP, and gives the TAP the host's address.
///
/// # Errors
/// If a device cannot be opened.
pub fn start(lab: &Lab, manner: Manner, core: Option<usize>) -> Result<Running<Reading>> {
    let through = Running::start(lab, ("rxo", core), move |stop, ready| {
        let (nic, host) = open(manner)?;
        ready();
        let ack_split = manner.ack_split;
        let config = WorkerConfig { ack_split, ..WorkerConfig::new(manner.policy) };
        let observe = |event: Event<'_>| print(&event);
        let station = Station::new(nic, host, config);
        let station = match manner.impair {
            [None, None] => station,
            impair => station.through(middleware(impair)?),
        };
        let Outcome { totals, result } = station.run(stop, observe)?;
        result?;
        Ok(totals.all)
    })?;
    lab.attach_host(TAP)?;
    Ok(through)
}

fn open(manner: Manner) -> Result<(Device, Device)> {
    let options = DeviceOptions {
        submit: manner.submit,
        mtu: manner.mtu,
        bring_up: true,
        ..DeviceOptions::default()
    };
    let tap = format!("tap:{TAP}").parse()?;
    Ok((wire(options)?, Device::open(&tap, options)?))
}

fn middleware([to_host, back]: [Option<ImpairmentSettings>; 2]) -> Result<Middleware> {
    let made = |settings| Impairment::new(settings, LinkKind::Ethernet);
    Ok(Middleware {
        impair_nic: to_host.map(made).transpose()?,
        impair_host: back.map(made).transpose()?,
        ..Middleware::default()
    })
}

fn print(event: &Event<'_>) {
    if let Event::Notice(line) = event {
        rxo_console::output::note(line);
    }
}
