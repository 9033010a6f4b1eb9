//! What an interface does for the stack, switched on and off.

use super::Interface;
use crate::error::{Context, Result};
use crate::sys;

/// An offload of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// The interface cuts large TCP sends into segments. On a veth, where nobody cuts, the other
    /// end gets packets larger than its MTU.
    TransmitSegmentation,
    /// The stack cuts large sends just before the interface. On a veth as above.
    GenericSegmentation,
    /// The interface completes checksums. On a veth, where nobody does, frames cross with
    /// *partial* ones.
    TransmitChecksum,
    /// The kernel coalesces what comes in. On a veth this also makes it poll (NAPI), without
    /// which there is nothing to coalesce.
    GenericReceive,
}

impl Offload {
    /// The ethtool commands that read and set it.
    fn commands(self) -> (u32, u32) {
        match self {
            Self::TransmitChecksum => (0x16, 0x17),
            Self::TransmitSegmentation => (0x1e, 0x1f),
            Self::GenericSegmentation => (0x23, 0x24),
            Self::GenericReceive => (0x2b, 0x2c),
        }
    }
}

/// Switches an offload and makes sure that it took.
pub(crate) fn set(interface: &Interface<'_>, which: Offload, on: bool) -> Result<()> {
    let control = interface.namespace().control();
    let state = if on { "on" } else { "off" };
    sys::set_offload(control, interface.name(), which.commands().1, on)
        .context(|| interface.cannot(&format!("switch {which:?} {state} on")))
}

/// Whether an offload is on.
pub(crate) fn get(interface: &Interface<'_>, which: Offload) -> Result<bool> {
    sys::get_offload(interface.namespace().control(), interface.name(), which.commands().0)
        .context(|| interface.cannot(&format!("read {which:?} of")))
}
