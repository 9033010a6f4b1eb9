//! Devices of a run: the handles by which the run owns them, and their open queues.

use std::io;
use std::os::fd::OwnedFd;

use anyhow::{Context, Error, Result};
use rxo::live::{Device, DeviceOptions};
use rxo_device::{DeviceError, FrameSource as _};
use rxo_driver::succession::Legacy;
use rxo_driver::{DeviceHandle, DeviceName, GuestOptions};
use rxo_frame::{Instant, LinkKind};

use super::card::CardPlan;
use super::guest::Guest;
use super::plan::Plan;
use super::survey::Survey;
use crate::sandbox;

/// Handles of the devices that the run owns. Those of the hosts' devices stay valid while a nic is removed
/// and comes back.
#[derive(Debug)]
pub(super) struct Handles {
    nic: Box<dyn DeviceHandle>,
    pub(super) hosts: Vec<Box<dyn DeviceHandle>>,
    /// `true` if several workers share the devices.
    are_shared: bool,
}

/// The open devices.
#[derive(Debug)]
pub(super) enum Devices {
    /// The devices of a single worker: the nic, and the host's device or the devices of all guests.
    Of1(Box<Device>, Vec<Device>),
    /// The queues of the nic and those of the host's device: one of each for each worker.
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
        let attach = |device: &DeviceName| match are_shared {
            true => device.attach_queues(count),
            false => device.attach(),
        };
        let nic = attach(&plan.nic)?;
        let hosts = plan.hosts().into_iter().map(attach).collect::<Result<_, _>>()?;
        Ok(Self { nic, hosts, are_shared })
    }

    /// Attaches to the nic of `plan` while another process uses it. Returns the handles, and the open nic,
    /// which receives frames from now on. The hosts' devices are [inherited](Self::inherit) later.
    ///
    /// # Errors
    /// If the nic is gone or down, or a privilege is missing.
    pub(super) fn beside(plan: &Plan) -> Result<(Self, Device)> {
        let nic = plan.nic.attach()?;
        let device = nic.open(DeviceOptions::default())?;
        Ok((Self { nic, hosts: Vec::new(), are_shared: false }, device))
    }

    /// Takes over the hosts' devices from another process, and opens them.
    ///
    /// # Errors
    /// If the devices are not those of `plan`, or one cannot be used.
    pub(super) fn inherit(
        &mut self,
        (plan, survey): (&Plan, &Survey),
        nic: Device,
        mut take: impl FnMut(&str) -> Option<Vec<OwnedFd>>,
    ) -> Result<Devices> {
        for host in plan.hosts() {
            let files = take(&host.to_string());
            let remedy = "start it with the flags of the running one";
            let files = files.with_context(|| format!("{host} is not handed over; {remedy}"))?;
            self.hosts.push(host.inherit(files)?);
        }
        let host = |n: usize| host_options(plan, survey, n);
        let hosts = self.hosts.iter().enumerate().map(|(n, device)| device.open(host(n)));
        Ok(Devices::Of1(Box::new(nic), hosts.collect::<Result<_, _>>()?))
    }

    /// Returns the descriptors with which another process takes over the hosts' devices.
    ///
    /// # Errors
    /// If a device cannot be handed over now.
    pub(super) fn hand_over(&self, plan: &Plan) -> io::Result<Vec<Legacy>> {
        let hosts = plan.hosts().into_iter().zip(&self.hosts);
        hosts
            .map(|(name, host)| Ok(Legacy { name: name.to_string(), files: host.hand_over()? }))
            .collect()
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

    /// Opens the devices. `host` returns the options of a host's device, given its index.
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
        let hosts = hosts.map(|(n, device)| device.open_queues(host(n)));
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

    /// Returns the ways in which frames of the nic and of the host's device are received; `None` for a kind
    /// of device with only one way.
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

/// Returns the features that a device offers a guest: those of a card, with the run's limits on memory.
fn offered(plan: &Plan) -> GuestOptions {
    GuestOptions { memory: plan.memory, ..plan.card.map(CardPlan::guest).unwrap_or_default() }
}

/// Returns the options of a device that rxo makes if `makes` is `true`.
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
