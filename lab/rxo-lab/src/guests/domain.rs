//! Runs rxo between the lab's wire and guests, on its own thread.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rxo::desk::Desk;
use rxo::device::Pause;
use rxo::live::{Device, DeviceOptions, Station};
use rxo::switch::{PortSettings, Switch, SwitchOptions, Vlans};
use rxo::worker::{Question, Readings};
use rxo::{Reading, WorkerConfig};
use rxo_coalesce::Policy;
use rxo_demo::running::{Running, wire};
use rxo_driver::{CopyPath, GuestOptions, PayloadPlaces};
use rxo_testbed::Lab;

use crate::source::{Polls, Shaped};

/// The treatment of packets by a driver domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Treatment {
    pub(crate) policy: Policy,
    /// The path of packets into the guest's memory.
    pub(crate) path: CopyPath,
}

/// Starts a driver domain for one guest, with polls of at most `frames_a_poll` frames. `places` counts the
/// payload by alignment in the guest's memory.
pub(crate) fn polling(
    lab: &Lab,
    treatment: Treatment,
    frames_a_poll: f64,
    (socket, places): (&Path, &'static PayloadPlaces),
) -> Result<Running<Reading>> {
    let socket = socket.to_owned();
    Running::start(lab, ("rxo", None), move |stop, ready| {
        let guest = card(treatment, &socket, Some(places))?;
        let Device { source, sink } = wire(DeviceOptions::default())?;
        ready();
        let source = Box::new(Shaped::polled(source, Polls::new(frames_a_poll)));
        let config = WorkerConfig {
            budget_frames: frames_a_poll.ceil() as usize,
            pause: Pause::NEVER,
            overload: None,
            ..WorkerConfig::new(treatment.policy)
        };
        let station = Station::new(Device { source, sink }, guest, config);
        let outcome = station.run(stop, |_| ())?;
        outcome.result?;
        Ok(outcome.totals.all)
    })
}

/// Starts a driver domain for a guest on each of `sockets`, behind one switch, with the polls of `rxo guest`.
/// Frames come from `nic`; requests are answered at `desk`.
pub(crate) fn switching(
    lab: &Lab,
    (treatment, desk): (Treatment, Option<Desk<Question>>),
    nic: impl FnOnce() -> Result<Device> + Send + 'static,
    (sockets, core): (&[PathBuf], Option<usize>),
) -> Result<Running<Readings>> {
    let sockets = sockets.to_vec();
    Running::start(lab, ("rxo", core), move |stop, ready| {
        let guests = sockets.iter().map(|socket| card(treatment, socket, None));
        let (guests, nic) = (guests.collect::<Result<Vec<_>>>()?, nic()?);
        ready();
        let ports = vec![PortSettings { vlans: Vlans::Only(0), fixed: None }; 1 + guests.len()];
        let switch = Switch::new(ports, SwitchOptions::default())?;
        let config = WorkerConfig { desk, ..WorkerConfig::new(treatment.policy) };
        let outcome = Station::switched(nic, guests, switch, config).run(stop, |_| ())?;
        outcome.result?;
        Ok(outcome.totals)
    })
}

/// Opens the card of a guest.
fn card(
    treatment: Treatment,
    socket: &Path,
    places: Option<&'static PayloadPlaces>,
) -> Result<Device> {
    let guest = GuestOptions { path: treatment.path, places, ..GuestOptions::default() };
    let options = DeviceOptions { guest, ..DeviceOptions::default() };
    Ok(Device::open(&format!("vhost:{}", socket.display()).parse()?, options)?)
}
