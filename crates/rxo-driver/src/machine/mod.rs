//! Machine: checks which features of this machine a run can use, and the state of an interface.
//!
//! This module is separate from [`custody`](crate::custody), which checks what a run would change. Contract: a
//! check leaves nothing behind. If it needs an interface, it creates one in a network namespace of its own where
//! possible, and removes the interface.

mod nic;
mod offers;
mod privilege;

use rxo_device::DeviceError;

use crate::{DeviceName, Finding};

/// Returns findings about the machine's features that a run uses. The check of isolation uses `interface`; with
/// `None` this check is skipped.
#[must_use]
pub fn offers(interface: Option<&str>) -> Vec<Finding> {
    let mut found = vec![offers::kernel(), offers::cores(), privilege::capabilities()];
    found.extend(offers::tap());
    found.extend([offers::packet_ring(), offers::packet_queues()]);
    found.extend([offers::io_uring(), offers::af_xdp()]);
    found.extend(interface.map(offers::isolation));
    found.extend([privilege::locks(), privilege::records()]);
    found
}

/// Returns findings about the interface of `device`: driver, state, speed, queues and offloads.
///
/// # Errors
/// If there is no such interface.
pub fn nic(device: &DeviceName) -> Result<Vec<Finding>, DeviceError> {
    Ok(nic::examine(device)?.into_iter().map(|one| one.for_device(device)).collect())
}
