//! The kernel's own coalescing on the interface we read from, switched off while we run.
//!
//! Left on, the kernel would hand us what it has coalesced by rules of its own, and ours would
//! find nothing to do.

use rxo_driver::{DeviceName, Feature, Interface};

/// Puts the kernel's coalescing back when dropped.
#[derive(Debug)]
pub(super) struct KernelGroOff {
    interface: Option<Interface>,
}

impl KernelGroOff {
    /// Switches it off, where it is on. An interface that does not let it be switched keeps it:
    /// its large frames then pass as they come.
    pub(super) fn on(device: &DeviceName) -> Self {
        let found = match device {
            DeviceName::Packet(name) => Interface::find(name).ok(),
            DeviceName::Tap(..) => None,
        };
        let interface = found
            .filter(|interface| interface.feature(Feature::Gro).unwrap_or(false))
            .filter(|interface| interface.set_feature(Feature::Gro, false).is_ok());
        Self { interface }
    }
}

impl Drop for KernelGroOff {
    fn drop(&mut self) {
        if let Some(interface) = &self.interface {
            // The interface may be gone, and its settings with it.
            _ = interface.set_feature(Feature::Gro, true);
        }
    }
}
