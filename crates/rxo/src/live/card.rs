//! A worker that plays a network card between a wire and a guest.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use rxo_ack::expand_packed;
use rxo_coalesce::Policy;
use rxo_device::middleware::WireSource;

use super::{Device, Event, Observer, Outcome, between};
use crate::desk::Desk;
use crate::worker::{Duplex, Misfit, Pause, Question, WorkerConfig};

/// What the card does beside moving frames.
#[derive(Clone, Debug)]
pub struct Card {
    /// Whether it validates the checksums of frames for the guest.
    pub validates: bool,
    /// Whether it expands ACK templates of the guest. Its device must offer that.
    pub expands: bool,
    /// Time between two calls of the observer with readings, at least 1 ms; `None` for no calls.
    pub report_every: Option<Duration>,
    /// Where it is asked while it runs.
    pub desk: Option<Desk<Question>>,
    /// Where it counts its turns, as in [`WorkerConfig::turns`].
    pub turns: Option<&'static AtomicU64>,
}

/// Runs a network card on this thread until `stop` is set or a device fails. What the peers leave to
/// their devices is done here: in both directions GSO frames of TCP are segmented and partial checksums
/// completed; ACK templates of the guest are expanded. Nothing is coalesced, and nothing is dropped but what
/// a ring cannot hold and what says that it is a template and is none.
///
/// # Errors
/// As [`run`](super::run).
///
/// # Examples
/// Until another thread sets `stop`:
/// ```no_run
/// use std::sync::atomic::AtomicBool;
///
/// use rxo::driver::{Device, DeviceOptions};
/// use rxo::live::{Card, run_card};
///
/// let open = |name: &str| Device::open(&name.parse()?, DeviceOptions::default());
/// let (wire, guest) = (open("packet:eth1")?, open("tap:rxo0")?);
/// let card =
///     Card { validates: true, expands: false, report_every: None, desk: None, turns: None };
/// let stop = AtomicBool::new(false);
/// run_card((wire, guest), card, &stop, |_event| {})?.result?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run_card(
    devices: (Device, Device),
    card: Card,
    stop: &AtomicBool,
    mut observe: impl FnMut(Event<'_>),
) -> Result<Outcome, Misfit> {
    run_observed(devices, card, stop, &mut observe)
}

fn run_observed(
    (wire, guest): (Device, Device),
    card: Card,
    stop: &AtomicBool,
    observe: Observer<'_>,
) -> Result<Outcome, Misfit> {
    let config = WorkerConfig {
        pause: Pause::NEVER,
        overload: None,
        report_every: card.report_every,
        desk: card.desk,
        turns: card.turns,
        ..WorkerConfig::new(Policy::none())
    };
    let wire = Duplex { source: WireSource::new(wire.source, card.validates), sink: wire.sink };
    // The peer's own card validates what it gets.
    let from_guest = WireSource::new(guest.source, false);
    let source = if card.expands { from_guest.expanding(expand_packed) } else { from_guest };
    let guest = Duplex { source, sink: guest.sink };
    between(wire, guest, config, stop, observe)
}
