//! Machine: offers of this machine to a run, and interfaces as they are.
//!
//! Separate from [`custody`](crate::custody), which knows what a run would change. Contract: looking leaves nothing behind.
//! Where it needs an interface, it makes one that nobody else sees, and removes it.

mod nic;
mod offers;
mod privilege;

use rxo_device::DeviceError;

use crate::{DeviceName, Finding};

/// Findings about the machine, for any run. Isolation is tried on `interface`; `None` does not need it.
#[must_use]
pub fn offers(interface: Option<&str>) -> Vec<Finding> {
    let mut found = vec![offers::kernel(), offers::cores(), privilege::capabilities()];
    found.extend(offers::tap());
    found.extend([offers::packet_ring(), offers::packet_queues()]);
    found.extend([offers::io_uring(), offers::xdp()]);
    found.extend(interface.map(offers::isolation));
    found.extend([privilege::locks(), privilege::records()]);
    found
}

/// Findings about the interface of `device`.
///
/// # Errors
/// If there is none.
pub fn nic(device: &DeviceName) -> Result<Vec<Finding>, DeviceError> {
    Ok(nic::look(device)?.into_iter().map(|one| one.about(device)).collect())
}
