//! Takes over descriptors of a TAP or TUN that other code has opened: a VPN, a VM monitor, a service manager.
//!
//! This module is separate from [`device`](super::device) because this module neither creates nor restores an
//! interface: both remain the task of the interface's owner. Contract: the settings of the descriptor decide the
//! form of the packets. Without `IFF_VNET_HDR` the kernel accepts no aggregates, so their original packets are
//! written, with complete checksums.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rxo_device::DeviceError;
use rxo_vnet::TUNNEL_HEADER_BYTES;

use super::Tap;
use super::device::TapDevice;
use super::offload::{self, Attached, Offloads};
use crate::interface::Interface;
use crate::{fault, sys};

/// The line for the user about a descriptor without a header.
pub(super) const NO_HEADER: &str = "its descriptor was opened without IFF_VNET_HDR, so packets are written one by one; add \
                                    that flag to write aggregates";

/// The treatment of a descriptor's offloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// The descriptor has no other user, so its offloads are enabled.
    Alone,
    /// Another user reads from the descriptor. The offloads stay unchanged, because they determine the form of
    /// the packets that this user reads.
    Shared,
}

impl Tap {
    /// Takes over a TAP or TUN that the caller has opened and attached (`TUNSETIFF`), in the network namespace of this
    /// thread. Enables as many offloads as the kernel has, so [`TapSource`](super::TapSource) receives GSO frames, and
    /// makes the descriptor non-blocking. Other settings stay, and nothing is restored at the end.
    ///
    /// The descriptor must have been opened with `IFF_NO_PI`. This cannot be checked, because the kernel does not
    /// report that flag. A descriptor without `IFF_VNET_HDR` works too, but each packet is written by itself.
    ///
    /// # Errors
    /// If the descriptor is no TAP or TUN, is not attached, or its interface is in another
    /// network namespace.
    ///
    /// # Examples
    /// ```no_run
    /// use std::fs::File;
    ///
    /// use rxo_driver::{SubmitMode, Tap};
    ///
    /// # fn open_a_tun() -> std::io::Result<File> { File::open("/dev/net/tun") }
    /// let tun: File = open_a_tun()?;
    /// let tun = Tap::from_fd(tun.into())?;
    /// let (source, sink) = (tun.source()?, tun.sink(SubmitMode::Writev)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_fd(queue: OwnedFd) -> Result<Self, DeviceError> {
        Self::from_queues([queue])
    }

    /// Takes over all queues of a TAP or TUN that was opened with `IFF_MULTI_QUEUE`, as [`Tap::from_fd`] does with one.
    /// [`Tap::devices`] returns the source and the sink of each.
    ///
    /// # Errors
    /// Returns the errors of [`Tap::from_fd`], and an error if the queues belong to different interfaces, or there are
    /// none.
    pub fn from_queues(queues: impl IntoIterator<Item = OwnedFd>) -> Result<Self, DeviceError> {
        let queues = queues.into_iter().map(|queue| TapDevice::adopt(queue, Use::Alone));
        let mut queues = queues.collect::<Result<Vec<_>, _>>()?.into_iter();
        let none =
            || DeviceError::Usage("a TAP or TUN without a queue: give its descriptors".into());
        let mut first = queues.next().ok_or_else(none)?;
        let mut others = Vec::new();
        for mut queue in queues {
            if queue.label != first.label {
                let (label, other) = (&first.label, &queue.label);
                return Err(DeviceError::Usage(format!(
                    "{label} and {other} are no queues of one interface: take over each by itself"
                )));
            }
            queue.is_first = false;
            others.push(Arc::new(queue));
        }
        first.begin_to_count()?;
        Ok(Self::of_queues(first, others))
    }

    /// Duplicates a descriptor that the caller continues to use, and takes the duplicate over as [`Tap::from_fd`]
    /// does. The offloads stay unchanged, so that the caller reads packets in the same form as before. Aggregates
    /// can be written without them. The descriptor becomes non-blocking for the caller too, because duplicates
    /// share that flag.
    ///
    /// # Errors
    /// Returns the errors of [`Tap::from_fd`], and an error if no descriptor is left.
    pub fn from_borrowed(queue: BorrowedFd<'_>) -> Result<Self, DeviceError> {
        let copy = queue.try_clone_to_owned();
        let copy = copy.map_err(|error| fault::system("cannot duplicate a descriptor", error))?;
        let mut device = TapDevice::adopt(copy, Use::Shared)?;
        device.begin_to_count()?;
        Ok(Self::of_queues(device, Vec::new()))
    }
}

impl TapDevice {
    fn adopt(queue: OwnedFd, usage: Use) -> Result<Self, DeviceError> {
        let Attached { name, kind, has_header } =
            offload::attached(queue.as_fd()).map_err(not_attached)?;
        let label = format!("{kind}:{name}");
        let interface = Interface::find(&name).map_err(|_| {
            DeviceError::Usage(format!(
                "the interface of {label} is in another network namespace; take its descriptor over on a thread in that \
                 namespace"
            ))
        })?;
        let offloads = adopted_offloads(queue.as_fd(), kind, has_header, usage);
        let offloads = offloads.and_then(|offloads| {
            sys::set_nonblocking(queue.as_fd())?;
            Ok(offloads)
        });
        let offloads = offloads.map_err(|error| fault::opening(&label, error))?;
        let mut device = Self::new(label, kind, interface, queue.into());
        device.offloads = offloads;
        Ok(device)
    }
}

/// Returns the offloads with which packets can be written to the descriptor; enables them for reading if it is not
/// shared.
fn adopted_offloads(
    queue: BorrowedFd<'_>,
    kind: super::TapKind,
    has_header: bool,
    usage: Use,
) -> io::Result<Offloads> {
    if !has_header {
        return Ok(Offloads::written(0));
    }
    let header_bytes = usize::try_from(offload::header_bytes(queue)?).unwrap_or(0);
    if header_bytes > TUNNEL_HEADER_BYTES {
        let message =
            format!("a virtio_net_hdr of {header_bytes} bytes is unknown; set 10, 12 or 24");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    match usage {
        Use::Alone => offload::enable_behind(queue, kind, header_bytes),
        Use::Shared => Ok(Offloads::written(header_bytes)),
    }
}

fn not_attached(error: io::Error) -> DeviceError {
    let message = match error.raw_os_error() {
        Some(libc::EBADFD) => {
            "a descriptor of /dev/net/tun is not attached to an interface; attach it with TUNSETIFF"
        }
        _ => "a descriptor is no TAP or TUN; give one of /dev/net/tun",
    };
    fault::system(message, error)
}
