//! Checks that the flags and the devices of a run fit together.

use anyhow::Result;
use rxo_driver::{DeviceName, Origin};
use rxo_frame::LinkKind;

use crate::exit::usage;

/// Returns `true` if each of the devices is a whole interface; `false` if a device is only one queue of an
/// interface, because the kernel keeps the other queues of that interface.
pub(super) fn takes_all(devices: [&DeviceName; 2]) -> bool {
    devices.iter().all(|device| device.rest().is_none())
}

/// If the run must wait for a deleted nic (`waits`), checks that the nic can come back. A nic that rxo itself
/// creates does not come back.
pub(super) fn can_wait_for(waits: bool, flag: &str, nic: &DeviceName) -> Result<()> {
    if !waits || nic.kind().interface == Some(Origin::Existing) {
        return Ok(());
    }
    Err(usage(format!(
        "--wait-for-nic waits for a nic, which {flag} {nic} makes by itself; give {flag} \
         packet:IFNAME"
    )))
}

/// If the run has `--upgrade` (`upgrades`), checks that a later rxo can take over `device`.
pub(super) fn can_upgrade(upgrades: bool, flag: &str, device: &DeviceName) -> Result<()> {
    if !upgrades || device.kind().can_be_inherited() {
        return Ok(());
    }
    Err(usage(format!(
        "--upgrade hands over packet:IFNAME, tap:NAME, tun:NAME or vhost:PATH, and not {flag} {device}"
    )))
}

/// Checks that the TAP can take over the nic's configuration, which requires that the nic is an interface
/// that rxo does not create.
pub(super) fn can_take_over(nic: &DeviceName, host: &DeviceName) -> Result<()> {
    let (from, to) = (nic.kind(), host.kind());
    let origins = (from.interface, to.interface);
    if origins == (Some(Origin::Existing), Some(Origin::Made))
        && to.link == Some(LinkKind::Ethernet)
    {
        return Ok(());
    }
    Err(usage(format!(
        "--take-over moves what a nic has to a TAP, and does nothing with --nic {nic} --host \
         {host}; give --nic packet:IFNAME --host tap:NAME"
    )))
}
