//! Survey: examines the devices of the plan before anything is opened or changed.
//!
//! The survey comes first, so that an impossible plan fails at once, and `--dry-run` fails with the same
//! error line.

use anyhow::{Context, Result, bail};
use rxo::worker::carried;
use rxo_coalesce::Policy;
use rxo_device::SinkCapabilities;
use rxo_driver::Interface;
use rxo_frame::LinkKind;

use super::plan::Plan;
use crate::exit::usage;
use crate::workers::Workers;

/// The MTU, in bytes, of the nic and the host's device if rxo creates both devices.
const DEFAULT_MTU: u32 = 1_500;

/// The properties of the devices before the run.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    /// Link type of both devices; Ethernet if the link type is unknown until a device is open.
    pub(super) link: LinkKind,
    /// The MTU of both devices, in bytes.
    pub(super) mtu: u32,
    /// `true` if the nic is a TAP that does not exist yet.
    pub(super) makes_nic: bool,
    /// `true` if the host's device is a TAP that does not exist yet.
    pub(super) makes_host: bool,
    /// The workers that share the devices.
    pub(super) workers: Workers,
}

impl Survey {
    /// Examines nothing, for a run that takes over the devices of another process. The run has the workers
    /// `workers`. `nic` is the index of the nic's interface, which has another name if its original name has
    /// moved to the host's TAP.
    pub(super) fn of_succession(plan: &Plan, workers: Workers, nic: Option<u32>) -> Self {
        let mtu = || Interface::find(&Interface::name_of(nic?)?).ok()?.mtu().ok();
        let links = [&plan.nic, &plan.host].map(|device| device.kind().link);
        Self {
            link: links.into_iter().flatten().next().unwrap_or(LinkKind::Ethernet),
            mtu: mtu().unwrap_or(DEFAULT_MTU),
            makes_nic: false,
            makes_host: true,
            workers,
        }
    }

    /// Examines both devices.
    ///
    /// # Errors
    /// If a device does not exist or is down, or the link types or MTUs of the two devices do not match.
    pub(super) fn of(plan: &Plan) -> Result<Self> {
        let Plan { nic, host, flags: [nic_flag, host_flag], .. } = plan;
        let (nic_link, host_link) = (nic.kind().link, host.kind().link);
        if let (Some(nic_link), Some(host_link)) = (nic_link, host_link)
            && nic_link != host_link
        {
            return Err(usage(format!(
                "{nic_flag} {nic} carries {} and {host_flag} {host} carries {}; give two that carry the same",
                carries(nic_link),
                carries(host_link)
            )));
        }
        let nic_mtu = nic.survey().context(*nic_flag)?;
        for guest in &plan.guests {
            let flag = || format!("--vhost {}={}", guest.name, guest.device.name());
            guest.device.survey().with_context(flag)?;
        }
        let host_mtu = host.survey().context(*host_flag)?;
        if let (Some(nic_mtu), Some(host_mtu)) = (nic_mtu, host_mtu)
            && nic_mtu != host_mtu
        {
            let name = host.name();
            bail!(
                "MTU mismatch: {nic} has {nic_mtu} and {host} has {host_mtu}; make them equal, \
                 such as with `ip link set {name} mtu {nic_mtu}`"
            );
        }
        Ok(Self {
            link: nic_link.or(host_link).unwrap_or(LinkKind::Ethernet),
            mtu: nic_mtu.or(host_mtu).unwrap_or(DEFAULT_MTU),
            makes_nic: nic_mtu.is_none(),
            makes_host: host_mtu.is_none(),
            workers: workers(plan),
        })
    }

    /// Returns the policy, reduced to the capabilities of the host's device. Every kind of device accepts TCP
    /// GSO frames. Support for UDP and tunnels is known only once the device is open, so the policy is checked
    /// again before the first frame.
    ///
    /// # Errors
    /// If the device lacks something that the policy requires.
    pub(super) fn carried(&self, plan: &Plan) -> Result<Policy> {
        let sink = SinkCapabilities {
            segments_tunnels: true,
            ..SinkCapabilities::with_gso(self.link, self.mtu)
        };
        let Policy { udp, tunnels, .. } = plan.policy;
        carried(plan.policy, sink)
            .map(|policy| Policy { udp, tunnels, ..policy })
            .map_err(|misfit| usage(format!("{} {}: {misfit}", plan.flags[1], plan.host)))
    }
}

/// Returns the workers of `plan`; a single one if the plan impairs the traffic.
pub(super) fn workers(plan: &Plan) -> Workers {
    // Guests have a thread each, and share no queues.
    let hosts = if plan.guests.is_empty() { plan.hosts() } else { Vec::new() };
    let workers = plan.workers.resolve(&[&[&plan.nic], hosts.as_slice()].concat());
    let impairs = plan.impair.iter().any(Option::is_some);
    if impairs { Workers { count: 1, ..workers } } else { workers }
}

/// Returns what a link of this kind carries, for messages: "Ethernet frames" or "IP packets".
pub(super) const fn carries(link: LinkKind) -> &'static str {
    match link {
        LinkKind::Ethernet => "Ethernet frames",
        LinkKind::RawIp => "IP packets",
    }
}
