//! What the system has of what the plan names, without changing anything.
//!
//! Asked before anything is opened, so that whatever cannot work is said at once and `--dry-run`
//! says the same.

use std::io;

use anyhow::{Context, Result, bail};
use rxo_device::{DeviceError, SinkCapabilities};
use rxo_driver::{DeviceName, Interface};
use rxo_frame::LinkKind;

use super::plan::Plan;
use crate::exit::usage;

/// The MTU of two devices that are both made by us.
const DEFAULT_MTU: u32 = 1_500;

/// The devices as they are now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    pub(super) link: LinkKind,
    /// Of both devices, in bytes.
    pub(super) mtu: u32,
    /// Whether the nic is a TAP that does not exist yet.
    pub(super) makes_nic: bool,
    /// Whether the host's device is one.
    pub(super) makes_host: bool,
}

impl Survey {
    /// Looks at both devices.
    ///
    /// # Errors
    /// When one does not exist, is down, or the two do not fit together.
    pub(super) fn of(plan: &Plan) -> Result<Self> {
        let Plan { nic, host, .. } = plan;
        let link = link(nic);
        if link != self::link(host) {
            return Err(usage(format!(
                "--nic {nic} carries {} and --host {host} carries {}; give two that carry the same",
                carries(link),
                carries(self::link(host))
            )));
        }
        let nic_mtu = mtu(nic).context("--nic")?;
        let host_mtu = mtu(host).context("--host")?;
        if let (Some(nic_mtu), Some(host_mtu)) = (nic_mtu, host_mtu)
            && nic_mtu != host_mtu
        {
            let name = host.interface();
            bail!(
                "MTU mismatch: {nic} has {nic_mtu} and {host} has {host_mtu}; make them equal, \
                 such as with `ip link set {name} mtu {nic_mtu}`"
            );
        }
        Ok(Self {
            link,
            mtu: nic_mtu.or(host_mtu).unwrap_or(DEFAULT_MTU),
            makes_nic: nic_mtu.is_none(),
            makes_host: host_mtu.is_none(),
        })
    }

    /// What the host's device will accept. All devices that can be named take segmentation; what
    /// an open one says is checked once more before the first frame.
    pub(super) const fn sink(&self) -> SinkCapabilities {
        SinkCapabilities {
            link: self.link,
            mtu: self.mtu,
            gso_bytes: 65_535,
            gathers: true,
            completes_checksums: true,
        }
    }
}

/// What frames of the device begin with.
const fn link(device: &DeviceName) -> LinkKind {
    match device {
        DeviceName::Packet(_) => LinkKind::Ethernet,
        DeviceName::Tap(kind, _) => kind.link(),
    }
}

/// What a link carries, in words.
pub(super) const fn carries(link: LinkKind) -> &'static str {
    match link {
        LinkKind::Ethernet => "Ethernet frames",
        LinkKind::RawIp => "IP packets",
    }
}

/// The device's MTU; `None` for a TAP that is still to be made.
fn mtu(device: &DeviceName) -> Result<Option<u32>> {
    let name = device.interface();
    let interface = match (device, Interface::find(name)) {
        (DeviceName::Tap(..), Err(DeviceError::Usage(_))) => return Ok(None),
        (DeviceName::Packet(_), Err(DeviceError::Usage(_))) => {
            return Err(usage(format!(
                "{device}: there is no interface `{name}` here; `ip link` lists those there are"
            )));
        }
        (_, found) => found?,
    };
    if matches!(device, DeviceName::Packet(_)) && !interface.is_up()? {
        return Err(DeviceError::System {
            message: format!("{device} is down; bring it up with `ip link set {name} up`"),
            source: io::ErrorKind::NetworkDown.into(),
        }
        .into());
    }
    Ok(Some(interface.mtu()?))
}
