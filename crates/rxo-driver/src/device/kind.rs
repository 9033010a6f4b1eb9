//! Table of device kinds, with the functions that parse names and that check and open devices of each kind.

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::{DeviceHandle, DeviceName};
use crate::succession::Handed;
use crate::{packet, tap, vhost, virtio, xdp};

/// All kinds of devices that can be named.
pub static KINDS: &[DeviceKind] =
    &[packet::KIND, xdp::KIND, tap::TAP, tap::TUN, vhost::KIND, virtio::KIND];

/// A kind of device, such as `packet` or `tap`.
#[derive(Debug)]
pub struct DeviceKind {
    /// The part of a device name before the colon, such as `packet`.
    pub prefix: &'static str,
    /// The part after the colon as messages write it, such as `IFNAME`.
    pub placeholder: &'static str,
    /// The origin of the interface in the device name; `None` if the name is not that of an interface, but for
    /// example the path of a socket.
    pub interface: Option<Origin>,
    /// The link layer of the device's frames; `None` if it depends on the open device.
    pub link: Option<LinkKind>,
    /// Checks the part after the colon. An error is a phrase that completes the sentence "device `…`".
    pub(crate) check_name: fn(&str) -> Result<(), &'static str>,
    /// Checks that the device can be opened, without changing anything. Returns its MTU in bytes; `None` if the
    /// device does not exist yet, or if its MTU is known only once it is open.
    pub(crate) survey: fn(&DeviceName) -> Result<Option<u32>, DeviceError>,
    /// Attaches to a device. Creates its interface if rxo creates the interfaces of this kind.
    pub(crate) attach: Attach,
    /// Attaches to a device that another process has handed over; `None` if a device of this kind cannot be
    /// handed over.
    pub(crate) inherit: Option<Inherit>,
    /// Attaches to several queues of the device; `None` if devices of this kind have one queue.
    pub(crate) queues: Option<AttachQueues>,
}

impl DeviceKind {
    /// Returns `true` if a device of this kind can be handed over to another process; see
    /// [`DeviceName::inherit`].
    #[must_use]
    pub const fn can_be_inherited(&self) -> bool {
        self.inherit.is_some()
    }

    /// Returns `true` if a device of this kind may have several queues.
    #[must_use]
    pub const fn has_queues(&self) -> bool {
        self.queues.is_some()
    }
}

pub(crate) type Attach = fn(&DeviceName) -> Result<Box<dyn DeviceHandle>, DeviceError>;

/// A function that attaches to the given number of queues of a device that another process has handed over.
pub(crate) type Inherit =
    fn(&DeviceName, Handed, u32) -> Result<Box<dyn DeviceHandle>, DeviceError>;

/// A function that attaches to the given number of queues of a device, without opening them yet.
pub(crate) type AttachQueues = fn(&DeviceName, u32) -> Result<Box<dyn DeviceHandle>, DeviceError>;

/// The origin of a device's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// rxo does not create the interface. The kernel and other programs use it too, so a run locks it,
    /// isolates it from the kernel's own stack, and restores it.
    Existing,
    /// rxo creates the interface if it does not exist.
    Made,
}

/// The longest interface name that the kernel accepts, in bytes.
const LONGEST_NAME_BYTES: usize = 15;

/// Checks the name of an interface by the kernel's rules, and refuses `%`, which the kernel would expand.
pub(crate) fn interface_name(name: &str) -> Result<(), &'static str> {
    let refused = |c: char| c.is_whitespace() || c == '/' || c == ':' || c == '%' || c == '\0';
    if name.is_empty() {
        Err("names no interface: give one such as `eth1`")
    } else if name.len() > LONGEST_NAME_BYTES {
        Err("has an interface name longer than 15 bytes: give one such as `eth1`")
    } else if name == "." || name == ".." || name.contains(refused) {
        Err("has an interface name with characters the system does not allow: give one such as \
             `eth1`")
    } else {
        Ok(())
    }
}
