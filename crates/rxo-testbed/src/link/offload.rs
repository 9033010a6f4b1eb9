//! Reads and sets the offloads of an interface.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::Interface;
use crate::cpu;
use crate::error::{Context, Result};
use crate::sys;

/// An offload of an interface, which can be on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// The interface segments large TCP sends (TSO). A veth does not segment, so the other end gets packets larger than
    /// its MTU.
    TransmitSegmentation,
    /// The stack keeps GSO frames whole until just before it passes them to the interface, and segments them
    /// there (GSO). On a veth, the frames are not segmented.
    GenericSegmentation,
    /// The interface completes TCP and UDP checksums. A veth does not, so frames with partial checksums cross
    /// it.
    TransmitChecksum,
    /// The kernel coalesces received frames (GRO). On a veth this also switches on polling (NAPI), without
    /// which the kernel would not coalesce.
    GenericReceive,
    /// With [`Offload::GenericReceive`], the kernel also coalesces UDP datagrams for sockets that did not ask
    /// for it (`rx-udp-gro-forwarding`, since Linux 5.12).
    UdpForwarding,
}

/// The form in which the kernel's ethtool interface identifies an offload.
enum Known {
    /// The offload has two commands: one that reads the offload, and one that sets the offload.
    Commands(u32, u32),
    /// The offload is a named feature of the interface.
    Name(&'static str),
}

impl Offload {
    fn known(self) -> Known {
        match self {
            Self::TransmitChecksum => Known::Commands(0x16, 0x17),
            Self::TransmitSegmentation => Known::Commands(0x1e, 0x1f),
            Self::GenericSegmentation => Known::Commands(0x23, 0x24),
            Self::GenericReceive => Known::Commands(0x2b, 0x2c),
            Self::UdpForwarding => Known::Name("rx-udp-gro-forwarding"),
        }
    }
}

/// Switches an offload on or off, and verifies that the change took effect.
pub(crate) fn set(interface: &Interface<'_>, which: Offload, on: bool) -> Result<()> {
    let (control, name) = (interface.namespace().control(), interface.name());
    let state = if on { "on" } else { "off" };
    match which.known() {
        Known::Commands(_, set) => sys::set_offload(control, name, set, on),
        Known::Name(feature) => sys::set_feature(control, name, feature, on),
    }
    .context(|| interface.cannot(&format!("switch {which:?} {state} on")))
}

/// Returns `true` if an offload is on.
pub(crate) fn get(interface: &Interface<'_>, which: Offload) -> Result<bool> {
    let (control, name) = (interface.namespace().control(), interface.name());
    match which.known() {
        Known::Commands(get, _) => sys::get_offload(control, name, get),
        Known::Name(feature) => sys::get_feature(control, name, feature),
    }
    .context(|| interface.cannot(&format!("read {which:?} of")))
}

/// The open file of a setting: the time for which the kernel holds coalesced packets beyond the end of a poll.
/// The file stays open because tests change the setting often.
#[derive(Debug)]
pub struct CoalescingHold(File);

impl CoalescingHold {
    pub(crate) fn open(interface: &Interface<'_>) -> Result<Self> {
        let path = format!("/sys/class/net/{}/gro_flush_timeout", interface.name());
        let open =
            || sys::show_own_network().and_then(|()| OpenOptions::new().write(true).open(path));
        let opened = interface.namespace().run(open)?;
        opened.map(Self).context(|| interface.cannot("hold what is coalesced on"))
    }

    /// Lets the kernel hold coalesced packets for at most `at_most` plus the time until the kernel's next clock
    /// tick (1 to 10 ms). With a time of zero, the kernel delivers all packets at the end of the next poll.
    ///
    /// # Errors
    /// If the interface was removed.
    pub fn set(&self, at_most: Duration) -> io::Result<()> {
        self.0.write_all_at(at_most.as_nanos().to_string().as_bytes(), 0)
    }
}

/// Lets a separate kernel thread process the interface's received frames. Returns the thread's id; `None` if
/// kernel threads are not visible to this process.
pub(crate) fn receive_in_thread(interface: &Interface<'_>) -> Result<Option<u32>> {
    // A veth has no NAPI unless GRO is on.
    set(interface, Offload::GenericReceive, true)?;
    let path = format!("/sys/class/net/{}/threaded", interface.name());
    let switch = || sys::show_own_network().and_then(|()| fs::write(path, "1"));
    let name = format!("napi/{}-", interface.name());
    let before = cpu::named(&name);
    interface.namespace().run(switch)?.context(|| interface.cannot("receive in a thread on"))?;
    Ok(cpu::named(&name).into_iter().find(|thread| !before.contains(thread)))
}
