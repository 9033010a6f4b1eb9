//! The network card: `rxo card` on a thread of this process, between the lab's wire and the ring of a host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rxo::Reading;
use rxo::live::{Card, Device, DeviceOptions, Event, Outcome, run_card};
use rxo_driver::GuestOptions;
use rxo_lab::Lab;

use crate::running::{Running, wire};

/// Starts `rxo card` on a thread, on the sender's core.
///
/// # Errors
/// If a device cannot be opened.
pub(crate) fn card(lab: &Lab, socket: PathBuf, core: Option<usize>) -> Result<Running<Reading>> {
    Running::start(lab, ("rxo-card", core), move |stop, ready| {
        let devices = open(&socket)?;
        ready();
        let card = Card { validates: true, expands: true, report_every: None, desk: None };
        // Its only notices are that the receiver has come and gone.
        let Outcome { totals, result } = run_card(devices, card, stop, |_: Event<'_>| {})?;
        result?;
        Ok(totals)
    })
}

fn open(socket: &Path) -> Result<(Device, Device)> {
    let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
    Ok((wire(options)?, ring(socket)?))
}

/// The card's side of the ring, as a device.
pub(super) fn ring(socket: &Path) -> Result<Device> {
    let guest = GuestOptions {
        aggregates: false,
        ack_templates: true,
        moderation: MODERATION,
        ..GuestOptions::default()
    };
    let name = format!("vhost:{}", socket.display()).parse()?;
    Ok(Device::open(&name, DeviceOptions { guest, ..DeviceOptions::default() })?)
}

/// As `rx-usecs` of a card.
pub(super) const MODERATION: Duration = Duration::from_micros(50);
