//! The network card: `rxo card` on a thread of this process, between the lab's wire and the ring of a host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rxo::Reading;
use rxo::live::{Card, Device, DeviceOptions, Outcome, Station};
use rxo_demo::running::{Running, wire};
use rxo_driver::GuestOptions;
use rxo_testbed::Lab;
use serde::Serialize;

/// Who makes ACKs of an ACK template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Expansion {
    /// The host, before it hands them to the card: at the receiver's expense, as the paper's driver.
    Host,
    /// The card, at no expense of the receiver's.
    Card,
}

/// Starts `rxo card` on a thread, on the sender's core. It notifies the host once in so long at most, and expands
/// templates.
///
/// # Errors
/// If a device cannot be opened.
pub(crate) fn start(
    lab: &Lab,
    (socket, moderation): (PathBuf, Duration),
    core: Option<usize>,
) -> Result<Running<Reading>> {
    start_for(Expansion::Card, lab, (socket, moderation), core)
}

/// Starts the same for a host whose templates are expanded by `expansion`.
///
/// # Errors
/// As [`start`].
pub(crate) fn start_for(
    expansion: Expansion,
    lab: &Lab,
    (socket, moderation): (PathBuf, Duration),
    core: Option<usize>,
) -> Result<Running<Reading>> {
    Running::start(lab, ("rxo-card", core), move |stop, ready| {
        let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
        let (wire, guest) = (wire(options)?, ring(&socket, moderation, expansion)?);
        ready();
        let expands = expansion == Expansion::Card;
        let card = Card { validates: true, expands, report_every: None, desk: None, turns: None };
        // Its only notices are that the receiver has come and gone.
        let Outcome { totals, result } = Station::card(wire, guest, card).run(stop, |_| {})?;
        result?;
        Ok(totals.all)
    })
}

/// The card's side of the ring, as a device.
///
/// # Errors
/// If it cannot be opened.
pub(crate) fn ring(socket: &Path, moderation: Duration, expansion: Expansion) -> Result<Device> {
    let guest = GuestOptions {
        aggregates: false,
        ack_templates: expansion == Expansion::Card,
        moderation,
        ..GuestOptions::default()
    };
    let name = format!("vhost:{}", socket.display()).parse()?;
    Ok(Device::open(&name, DeviceOptions { guest, ..DeviceOptions::default() })?)
}

/// As `rx-usecs` of a card.
pub(crate) const MODERATION: Duration = Duration::from_micros(50);
