//! Runs the network card: `rxo card` on a thread of this process, between the lab's wire and a host's ring.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rxo::Reading;
use rxo::live::{Card, Device, DeviceOptions, Outcome, Station};
use rxo_demo::running::{Running, wire};
use rxo_driver::{DeviceName, GuestOptions};
use rxo_testbed::Lab;
use serde::Serialize;

/// The part that expands ACK templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Expansion {
    /// The host's driver, before it hands ACKs to the card: at the receiver's expense, as in the paper.
    Host,
    /// The card, at no cost to the receiver.
    Card,
}

/// Starts `rxo card` on a thread, on the sender's core. The card expands templates, and notifies the host at
/// most once per `moderation`.
pub(crate) fn start(
    lab: &Lab,
    (socket, moderation): (PathBuf, Duration),
    core: Option<usize>,
) -> Result<Running<Reading>> {
    start_for(Expansion::Card, lab, (socket, moderation), core)
}

/// Starts `rxo card` as [`start`] does, with templates expanded by `expansion`.
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
        // The station's only events are that the receiver connects and disconnects, so they are ignored.
        let Outcome { totals, result } = Station::card(wire, guest, card).run(stop, |_| {})?;
        result?;
        Ok(totals.all)
    })
}

/// Opens the card's side of the ring as a device.
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

/// Opens the host's side of a ring as a device. The other side answers late under valgrind and on a busy
/// machine, and the driver waits for some seconds only, so an attempt that fails is repeated.
pub(crate) fn host_side(ring: &DeviceName) -> Result<Device> {
    let open = || Device::open(ring, DeviceOptions::default());
    let opened = (1..ATTEMPTS).find_map(|_| open().ok());
    opened.map_or_else(|| Ok(open()?), Ok)
}

/// Attempts to open a ring, of five seconds each.
const ATTEMPTS: usize = 12;
/// Shortest time between two notifications, like `rx-usecs` of a card.
pub(crate) const MODERATION: Duration = Duration::from_micros(50);
