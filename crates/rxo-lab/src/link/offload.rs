//! Switches the offloads of an interface.

use std::fs;

use super::Interface;
use crate::error::{Context, Result};
use crate::sys;

/// An offload of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// The interface segments large TCP sends. A veth does not segment, so the other end gets
    /// packets larger than its MTU.
    TransmitSegmentation,
    /// The stack segments large sends just before the interface. On a veth, it does not.
    GenericSegmentation,
    /// The interface completes checksums. A veth does not, so frames cross with
    /// *partial* ones.
    TransmitChecksum,
    /// The kernel coalesces received frames. On a veth this also switches on polling (NAPI),
    /// without which there is nothing to coalesce.
    GenericReceive,
}

impl Offload {
    /// The ethtool commands that read and set the offload.
    fn commands(self) -> (u32, u32) {
        match self {
            Self::TransmitChecksum => (0x16, 0x17),
            Self::TransmitSegmentation => (0x1e, 0x1f),
            Self::GenericSegmentation => (0x23, 0x24),
            Self::GenericReceive => (0x2b, 0x2c),
        }
    }
}

/// Switches an offload and verifies that it took effect.
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

/// Lets a kernel thread process what the interface receives.
pub(crate) fn receive_in_thread(interface: &Interface<'_>) -> Result<()> {
    // A veth has no NAPI without it.
    set(interface, Offload::GenericReceive, true)?;
    let path = format!("/sys/class/net/{}/threaded", interface.name());
    let switch = || sys::show_own_network().and_then(|()| fs::write(path, "1"));
    interface.namespace().run(switch)?.context(|| interface.cannot("receive in a thread on"))
}
