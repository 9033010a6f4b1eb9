//! The network card: `rxo card` on a thread of this process, between the lab's wire and the ring of a host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rxo::Reading;
use rxo::live::{Card, Device, DeviceOptions, Event, Outcome, run_card};
use rxo_driver::GuestOptions;
use rxo_lab::Lab;

use crate::running::{Running, wire};

/// Starts `rxo card` on a thread, on the sender's core. It notifies the host once in so long at most.
///
/// # Errors
/// If a device cannot be opened.
pub(crate) fn start(
    lab: &Lab,
    (socket, moderation): (PathBuf, Duration),
    core: Option<usize>,
) -> Result<Running<Reading>> {
    Running::start(lab, ("rxo-card", core), move |stop, ready| {
        let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
        let devices = (wire(options)?, ring(&socket, moderation)?);
        ready();
        let card = Card { validates: true, expands: true, report_every: None, desk: None };
        // Its only notices are that the receiver has come and gone.
        let Outcome { totals, result } = run_card(devices, card, stop, |_: Event<'_>| {})?;
        result?;
        Ok(totals)
    })
}

/// The card's side of the ring, as a device.
///
/// # Errors
/// If it cannot be opened.
pub(crate) fn ring(socket: &Path, moderation: Duration) -> Result<Device> {
    let guest = GuestOptions {
        aggregates: false,
        ack_templates: true,
        moderation,
        ..GuestOptions::default()
    };
    let name = format!("vhost:{}", socket.display()).parse()?;
    Ok(Device::open(&name, DeviceOptions { guest, ..DeviceOptions::default() })?)
}

/// As `rx-usecs` of a card.
pub(crate) const MODERATION: Duration = Duration::from_micros(50);
