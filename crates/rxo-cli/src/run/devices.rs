//! Devices of a run: the handles by which the run owns the devices, and the open queues of the devices.

use std::io;

use anyhow::{Context, Error, Result};
use rxo::live::{Device, DeviceOptions};
use rxo_device::{DeviceError, FrameSource as _};
use rxo_driver::succession::{Handed, HandedDevice, Handover};
use rxo_driver::{DeviceHandle, DeviceName, GuestOptions};
use rxo_frame::{Instant, LinkKind};

use super::card::CardPlan;
use super::guest::Guest;
use super::plan::Plan;
use super::survey::Survey;
use crate::sandbox;
use crate::workers::Workers;

/// Handles of the devices that the run owns. The handles of the hosts' devices stay valid while a nic is
/// removed and comes back.
#[derive(Debug)]
pub(super) struct Handles {
    nic: Box<dyn DeviceHandle>,
    pub(super) hosts: Vec<Box<dyn DeviceHandle>>,
    /// `true` if several workers share the nic.
    are_shared: bool,
    /// `true` if the hosts' devices are guests, which have no queues for workers.
    are_guests: bool,
}

/// The open devices of a run.
#[derive(Debug)]
pub(super) enum Devices {
    /// The devices of a single worker: the nic, and the host's device or the devices of all guests.
    Of1(Box<Device>, Vec<Device>),
    /// The queues of the nic, one for each worker, and those of the host's device or the devices of all guests.
    OfSeveral(Vec<Device>, Vec<Device>),
}

impl Handles {
    /// Takes ownership of the devices of `plan`.
    ///
    /// # Errors
    /// If a device is in use, or a privilege is missing.
    pub(super) fn of(plan: &Plan, survey: &Survey) -> Result<Self> {
        let count = survey.workers.count;
        let are_shared = survey.workers.are_several();
        let are_guests = !plan.guests.is_empty();
        let attach = |device: &DeviceName, has_queues: bool| match has_queues {
            true => device.attach_queues(count),
            false => device.attach(),
        };
        let nic = attach(&plan.nic, are_shared)?;
        let hosts = plan.hosts().into_iter().map(|host| attach(host, are_shared && !are_guests));
        let hosts = hosts.collect::<Result<_, _>>()?;
        Ok(Self { nic, hosts, are_shared, are_guests })
    }

    /// Attaches to the devices of `plan` that another process hands over.
    ///
    /// # Errors
    /// If the devices are not those of `plan`, or have a different number of queues.
    pub(super) fn inherit(plan: &Plan, workers: &Workers, handover: &mut Handover) -> Result<Self> {
        let mut inherit = |device: &DeviceName, queues: u32| -> Result<Box<dyn DeviceHandle>> {
            let handed = handover.take(&device.to_string());
            let remedy = "start it with the flags of the running one";
            let handed =
                handed.with_context(|| format!("{device} is not handed over; {remedy}"))?;
            Ok(device.inherit(handed, queues)?)
        };
        let nic = inherit(&plan.nic, workers.count)?;
        let are_guests = !plan.guests.is_empty();
        let queues = if are_guests { 1 } else { workers.count };
        let hosts = plan.hosts().into_iter().map(|host| inherit(host, queues));
        let hosts = hosts.collect::<Result<_>>()?;
        Ok(Self { nic, hosts, are_shared: workers.are_several(), are_guests })
    }

    /// Opens devices that another process hands over, and leaves their settings unchanged.
    ///
    /// # Errors
    /// If a device is gone.
    pub(super) fn open_inherited(&self, plan: &Plan, survey: &Survey) -> Result<Devices> {
        let is_guest = plan.host.kind().interface.is_none();
        let host = |n: usize| DeviceOptions {
            mtu: is_guest.then_some(survey.mtu),
            bring_up: false,
            ..host_options(plan, survey, n)
        };
        self.open_with(DeviceOptions::default(), host).map_err(Error::new)
    }

    /// Returns the indices of the interfaces of the nic and of the first host; `None` for a device that is not
    /// open, or that is not an interface.
    pub(super) fn interfaces(&self) -> [Option<u32>; 2] {
        [self.nic.interface(), self.hosts.first().and_then(|host| host.interface())]
    }

    /// Returns the handover state of the devices: the descriptors and numbers with which another process
    /// attaches to the devices.
    ///
    /// # Errors
    /// If a device cannot be handed over.
    pub(super) fn hand_over(&self, plan: &Plan) -> io::Result<Handover> {
        self.handover(plan, |device| device.hand_over())
    }

    /// Returns the positions at which the devices have stopped. The devices must be closed.
    ///
    /// # Errors
    /// If a device cannot be handed over now.
    pub(super) fn positions(&self, plan: &Plan) -> io::Result<Handover> {
        self.handover(plan, |device| device.position())
    }

    /// Makes the devices continue at `positions`, at which another process has stopped.
    ///
    /// # Errors
    /// If a position is missing, or does not fit its device.
    pub(super) fn go_on_at(&self, plan: &Plan, mut positions: Handover) -> io::Result<()> {
        for (name, device) in self.named(plan) {
            let position = positions.take(&name.to_string());
            device.go_on_at(position.ok_or(io::ErrorKind::InvalidData)?)?;
        }
        Ok(())
    }

    fn handover(
        &self,
        plan: &Plan,
        of: impl Fn(&dyn DeviceHandle) -> io::Result<Handed>,
    ) -> io::Result<Handover> {
        let handed_device = |(name, device): (&DeviceName, &dyn DeviceHandle)| {
            Ok(HandedDevice { name: name.to_string(), handed: of(device)? })
        };
        Ok(Handover { devices: self.named(plan).map(handed_device).collect::<io::Result<_>>()? })
    }

    fn named<'h>(
        &'h self,
        plan: &'h Plan,
    ) -> impl Iterator<Item = (&'h DeviceName, &'h dyn DeviceHandle)> {
        let names = std::iter::once(&plan.nic).chain(plan.hosts());
        names.zip(std::iter::once(&self.nic).chain(&self.hosts).map(|device| &**device))
    }

    /// Opens the devices for the first time.
    ///
    /// # Errors
    /// If a device is gone or down, or does not fit the plan.
    pub(super) fn open(&self, plan: &Plan, survey: &Survey) -> Result<Devices> {
        let nic = options(plan, survey, survey.makes_nic, offered(plan));
        let host = |n: usize| host_options(plan, survey, n);
        self.open_with(nic, host).map_err(Error::new)
    }

    /// Opens the devices again, and leaves their settings unchanged.
    ///
    /// # Errors
    /// If a device is gone or down.
    pub(super) fn reopen(&self) -> Result<Devices> {
        let options = DeviceOptions::default();
        self.open_with(options, |_| options).map_err(Error::new)
    }

    /// Opens the devices: the nic with the options `nic`, and each host's device with the options that `host`
    /// returns for its index.
    fn open_with(
        &self,
        nic: DeviceOptions,
        host: impl Fn(usize) -> DeviceOptions,
    ) -> Result<Devices, DeviceError> {
        let hosts = self.hosts.iter().enumerate();
        if !self.are_shared {
            let nic = Box::new(self.nic.open(nic)?);
            let hosts = hosts.map(|(n, device)| device.open(host(n)));
            return Ok(Devices::Of1(nic, hosts.collect::<Result<_, _>>()?));
        }
        let nic = self.nic.open_queues(nic)?;
        let hosts = hosts.map(|(n, device)| match self.are_guests {
            true => device.open(host(n)).map(|device| vec![device]),
            false => device.open_queues(host(n)),
        });
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        Ok(Devices::OfSeveral(nic, hosts.into_iter().flatten().collect()))
    }
}

impl Devices {
    /// Returns the link type of the nic's frames.
    pub(super) fn link(&self) -> LinkKind {
        match self {
            Self::Of1(nic, _) => link_of(nic),
            Self::OfSeveral(nic, _) => nic.first().map_or(LinkKind::Ethernet, link_of),
        }
    }

    /// Returns the receive method of the nic and of the host's device, such as `AF_XDP, copy mode`; `None` for
    /// a device kind that has only one method.
    pub(super) fn access(&self, plan: &Plan) -> [Option<&'static str>; 2] {
        let access = |name: &DeviceName, device: Option<&Device>| {
            let has_several = sandbox::attaches_programs(name);
            let access = device.and_then(|device| device.source.access());
            access.or(has_several.then_some("packet ring"))
        };
        match self {
            Self::Of1(nic, hosts) => {
                [access(&plan.nic, Some(nic)), access(&plan.host, hosts.first())]
            }
            Self::OfSeveral(nic, hosts) => {
                [access(&plan.nic, nic.first()), access(&plan.host, hosts.first())]
            }
        }
    }

    /// Discards the nic's frames that arrived before `instant`.
    pub(super) fn discard_before(&mut self, instant: Instant) {
        match self {
            Self::Of1(nic, _) => nic.source.discard_before(instant),
            Self::OfSeveral(nic, _) => {
                nic.iter_mut().for_each(|queue| queue.source.discard_before(instant));
            }
        }
    }
}

/// Returns the options of the host's device with this number.
fn host_options(plan: &Plan, survey: &Survey, n: usize) -> DeviceOptions {
    let offered = offered(plan);
    let memory = plan.guests.get(n).map_or(offered.memory, Guest::memory);
    options(plan, survey, survey.makes_host, GuestOptions { memory, ..offered })
}

/// Returns the features that a device offers a guest: those of an emulated card if the plan has one, with the
/// run's limits on memory.
fn offered(plan: &Plan) -> GuestOptions {
    GuestOptions { memory: plan.memory, ..plan.card.map(CardPlan::guest).unwrap_or_default() }
}

/// Returns the options for a device of the plan. `makes` is `true` if rxo creates the device, and `guest` has
/// the features for a guest.
fn options(plan: &Plan, survey: &Survey, makes: bool, guest: GuestOptions) -> DeviceOptions {
    DeviceOptions {
        mtu: makes.then_some(survey.mtu),
        // With `--take-over` the TAP is switched on only when it has the nic's hardware address.
        bring_up: !plan.take_over,
        guest,
        ..DeviceOptions::default()
    }
}

fn link_of(device: &Device) -> LinkKind {
    device.source.capabilities().link
}
