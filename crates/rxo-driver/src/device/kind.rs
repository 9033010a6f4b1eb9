//! The table of device kinds.

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::{DeviceHandle, DeviceName, DeviceOptions, DeviceSink, DeviceSource};
use crate::{packet, tap, vhost, virtio};

/// Every kind of device that can be named.
pub static KINDS: &[DeviceKind] = &[packet::KIND, tap::TAP, tap::TUN, vhost::KIND, virtio::KIND];

/// One kind of device.
#[derive(Debug)]
pub struct DeviceKind {
    /// What stands before the colon of a name.
    pub prefix: &'static str,
    /// What messages write behind the colon: `IFNAME`.
    pub placeholder: &'static str,
    /// Which interface of the system the name means; `None` if it means something else, such as the
    /// path of a socket.
    pub interface: Option<Origin>,
    /// What a frame begins with; `None` if only an open device says.
    pub link: Option<LinkKind>,
    /// Checks what stands behind the colon. An error completes "device `…`".
    pub(crate) check_name: fn(&str) -> Result<(), &'static str>,
    /// Checks that the device can be opened, without changing anything. Returns its MTU in bytes;
    /// `None` if it does not exist yet or only an open one says.
    pub(crate) survey: fn(&DeviceName) -> Result<Option<u32>, DeviceError>,
    /// Which directions the device has, and what opens them.
    pub(crate) ends: Ends,
}

/// The directions of a kind of device, each with the function that opens it.
#[derive(Debug)]
pub(crate) enum Ends {
    /// It gives frames and takes frames. The function takes hold of the device.
    Both(Attach),
    /// It only gives frames.
    #[cfg_attr(not(test), expect(dead_code, reason = "no kind of KINDS has one direction yet"))]
    Source(fn(&DeviceName, DeviceOptions) -> Result<DeviceSource, DeviceError>),
    /// It only takes frames.
    #[cfg_attr(not(test), expect(dead_code, reason = "no kind of KINDS has one direction yet"))]
    Sink(fn(&DeviceName, DeviceOptions) -> Result<DeviceSink, DeviceError>),
}

/// Takes hold of a device that has both directions.
pub(crate) type Attach = fn(&DeviceName) -> Result<Box<dyn DeviceHandle>, DeviceError>;

/// Where the interface of a device comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It exists without rxo. The kernel and other programs use it too, so a run locks it, keeps the
    /// kernel off it, and gives it back.
    Existing,
    /// rxo makes it if it does not exist.
    Made,
}

/// The longest interface name that the kernel accepts, in bytes.
const LONGEST_NAME_BYTES: usize = 15;

/// Checks the name of an interface by the kernel's rule, and for `%`, which the kernel would expand.
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
