//! Packet sockets: opening, and the options that source and sink share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::c_int;
use rxo_device::DeviceError;

use crate::interface::Interface;
use crate::sys::Plain;
use crate::{fault, sys};

/// The requested size, in bytes, of the kernel's queue for received GSO frames, and of the kernel's queue for
/// packets to send.
pub(crate) const QUEUE_BYTES: c_int = 32 << 20;

/// An interface that is up, and a packet socket that is not yet bound to it.
pub(super) struct Opened {
    /// The name of the device as the user wrote it: `packet:eth1`.
    pub(super) device: String,
    pub(super) interface: Interface,
    pub(super) socket: OwnedFd,
}

impl Opened {
    /// Finds the interface, checks that it is up, and opens a socket whose packets have a `virtio_net_hdr`.
    pub(super) fn new(name: &str) -> Result<Self, DeviceError> {
        let device = format!("packet:{name}");
        let interface = Interface::find(name).map_err(|error| match error {
            DeviceError::Usage(_) => fault::no_such_interface(&device, name),
            other => other,
        })?;
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
            .map_err(|e| fault::opening(&device, e))?;
        if !interface.is_up()? {
            return Err(fault::is_down(&device, name));
        }
        let opened = Self { device, interface, socket };
        opened.set(libc::PACKET_VNET_HDR, 1)?;
        Ok(opened)
    }

    /// Sets an option of packet sockets; a failure is an error.
    pub(super) fn set(&self, option: c_int, value: c_int) -> Result<(), DeviceError> {
        sys::set_option(self.socket(), libc::SOL_PACKET, option, &value)
            .map_err(|e| fault::opening(&self.device, e))
    }

    /// Sets an option that is not needed for correctness, and that older kernels lack. A failure is ignored.
    pub(super) fn try_set(&self, option: c_int, value: c_int) {
        let _unsupported_is_fine = sys::set_option(self.socket(), libc::SOL_PACKET, option, &value);
    }

    /// Enlarges a queue of the kernel to [`QUEUE_BYTES`]; without privilege, only up to the system's limit.
    pub(super) fn enlarge_queue(&self, forced: c_int, plain: c_int) {
        let (level, bytes) = (libc::SOL_SOCKET, QUEUE_BYTES);
        if sys::set_option(self.socket(), level, forced, &bytes).is_err() {
            let _smaller_is_fine = sys::set_option(self.socket(), level, plain, &bytes);
        }
    }

    /// Lets the interface receive frames for all addresses until the socket is closed.
    pub(super) fn set_promiscuous(&self) -> Result<(), DeviceError> {
        let mut request = libc::packet_mreq::zeroed();
        request.mr_ifindex = self.interface.index()?;
        request.mr_type = libc::PACKET_MR_PROMISC as _;
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP);
        sys::set_option(self.socket(), level, option, &request)
            .map_err(|e| fault::opening(&self.device, e))
    }

    /// Binds the socket to the interface. From then on the socket receives frames of `protocol` (0 for none).
    pub(super) fn bind(&self, protocol: u16) -> Result<(), DeviceError> {
        let mut address = libc::sockaddr_ll::zeroed();
        address.sll_family = libc::AF_PACKET as _;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = self.interface.index()?;
        sys::bind(self.socket(), &address).map_err(|e| fault::opening(&self.device, e))
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the interface to which the socket of `device` is bound.
///
/// # Errors
/// If the interface was deleted.
pub(super) fn bound(device: &str, socket: BorrowedFd<'_>) -> Result<Interface, DeviceError> {
    let index = sys::bound_interface(socket).ok().and_then(|index| u32::try_from(index).ok());
    let name = index.filter(|index| *index > 0).and_then(Interface::name_of);
    Interface::find(&name.ok_or_else(|| DeviceError::Gone(device.to_owned()))?)
}

/// Converts an error of an open socket to the error for the caller; `None` if the link is down, because it
/// comes back on the same socket.
pub(super) fn device_error(
    device: &str,
    socket: BorrowedFd<'_>,
    error: io::Error,
) -> Option<DeviceError> {
    fault::device_error(device, fault::means_gone(&error) || is_deleted(socket), error)
}

/// Returns `true` if the socket's interface was deleted. A new interface of the same name does not count.
pub(super) fn is_deleted(socket: BorrowedFd<'_>) -> bool {
    sys::bound_interface(socket).is_ok_and(|index| index <= 0)
}
