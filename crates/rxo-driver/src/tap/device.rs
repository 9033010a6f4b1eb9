//! Creates a TAP or TUN interface, or takes over a persistent one and restores its settings at the end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use rxo_device::DeviceError;

use super::offload::Offloads;
use super::sink::TapPort;
use super::{SubmitMode, TapKind, TapSource, offload};
use crate::device::DeviceSink;
use crate::fault;
use crate::interface::Interface;
use crate::statistics::Statistics;

const TUN_DEVICE: &str = "/dev/net/tun";

/// The smallest capacity of the queue before a TAP, in packets. When the queue is full the kernel drops
/// packets, and does not make the sender wait. A host sends up to a million packets a second, so the queue
/// bridges 4 ms without a read, the longest time slice of another process on the same core.
const QUEUE_PACKETS: u32 = 4_096;

/// The largest MTU of a TAP.
pub(super) const LARGEST_MTU: u32 = 65_521;

/// A TAP or TUN interface whose other side is this process.
///
/// If the interface did not exist before, the kernel removes it when the last of `Tap`, its sources and its
/// sinks is dropped, and when the process is killed. A persistent interface gets back its former MTU, queue
/// length and state (up or down).
#[derive(Debug)]
pub struct Tap {
    device: Arc<TapDevice>,
}

impl Tap {
    /// Creates the interface `name`, or takes over a persistent one that no other process has open.
    ///
    /// # Errors
    /// If the name is taken, or `/dev/net/tun` or privilege is missing.
    pub fn open(name: &str, kind: TapKind) -> Result<Self, DeviceError> {
        Ok(Self { device: Arc::new(TapDevice::open(name, kind)?) })
    }

    /// Returns whether the interface carries Ethernet frames or IP packets.
    #[must_use]
    pub fn kind(&self) -> TapKind {
        self.device.kind
    }

    /// Returns the interface, to bring it up and to read its settings.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.device.interface
    }

    /// Returns the descriptor that keeps the interface alive.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    /// Sets the MTU, in bytes, at most 65,521. Call it before creating sources and sinks, which read the MTU
    /// only once.
    ///
    /// # Errors
    /// If the MTU is too large or the system refuses.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), DeviceError> {
        if mtu > LARGEST_MTU {
            return Err(DeviceError::Usage(format!(
                "{}: an MTU of {mtu} is too large; the largest is {LARGEST_MTU}",
                self.device.label
            )));
        }
        self.device.interface.set_mtu(mtu)
    }

    /// Creates a source of the packets that the host's stack sends into the interface.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn source(&self) -> Result<TapSource, DeviceError> {
        TapSource::new(Arc::clone(&self.device))
    }

    /// Creates a sink for packets that the host's stack receives from the interface. Create it on the thread
    /// that uses it: it cannot move to another.
    ///
    /// # Errors
    /// If the interface is gone, or `mode` is `Uring` and the system offers no io_uring.
    pub fn sink(&self, mode: SubmitMode) -> Result<DeviceSink, DeviceError> {
        TapPort::new(Arc::clone(&self.device), mode).map(DeviceSink::new)
    }
}

/// The open interface, shared by sources and sinks.
#[derive(Debug)]
pub(super) struct TapDevice {
    /// The device's name as the user wrote it: `tap:rxo0`.
    pub(super) label: String,
    pub(super) kind: TapKind,
    pub(super) interface: Interface,
    /// The offloads that the kernel has accepted.
    pub(super) offloads: Offloads,
    file: File,
    before: Option<Before>,
    statistics: Option<Statistics>,
    /// The packets that the interface had dropped before it was opened.
    dropped_before: u64,
}

/// The settings of a persistent interface before rxo changed them.
#[derive(Debug)]
struct Before {
    mtu: u32,
    up: bool,
    queue_packets: u32,
    header_bytes: i32,
}

impl TapDevice {
    fn open(name: &str, kind: TapKind) -> Result<Self, DeviceError> {
        let label = format!("{kind}:{name}");
        let file = open_tun(&label)?;
        let existed = Interface::find(name).is_ok();
        offload::attach(file.as_fd(), kind, name)
            .map_err(|error| refused(&label, kind, name, error))?;
        let interface = Interface::find(name)?;
        let before = if existed { Some(Before::read(&interface, &file)?) } else { None };
        let offloads = Offloads::default();
        let (statistics, dropped_before) = (Statistics::of(interface.index()?).ok(), 0);
        let mut device =
            Self { label, kind, interface, offloads, file, before, statistics, dropped_before };
        device.offloads = offload::enable(device.file.as_fd(), kind)
            .map_err(|e| fault::opening(&device.label, e))?;
        if device.interface.queue_packets()? < QUEUE_PACKETS {
            // The owner of a persistent interface may open it without the privilege to change it.
            let _shorter_is_fine = device.interface.set_queue_packets(QUEUE_PACKETS);
        }
        device.dropped_before = device.dropped();
        Ok(device)
    }

    /// Creates a device that reads and writes `descriptor`.
    #[cfg(test)]
    pub(super) fn for_tests(descriptor: std::os::fd::OwnedFd) -> Self {
        let file = File::from(descriptor);
        let interface = Interface::find("lo").expect("every system has one");
        let (label, kind) = ("tap:test".to_owned(), TapKind::Tap);
        let offloads = Offloads::default();
        let (before, statistics, dropped_before) = (None, None, 0);
        Self { label, kind, interface, offloads, file, before, statistics, dropped_before }
    }

    /// Returns how many packets of the host's stack the kernel has dropped since the device was opened,
    /// because the queue was full; 0 if unknown.
    pub(super) fn dropped(&self) -> u64 {
        let now = self.statistics.as_ref().and_then(Statistics::read);
        now.map_or(0, |now| now.sent_drops.saturating_sub(self.dropped_before))
    }

    /// Converts an error of the descriptor to the error for the caller.
    pub(super) fn lost(&self, error: io::Error) -> DeviceError {
        if fault::means_gone(&error) {
            DeviceError::Gone(self.label.clone())
        } else {
            fault::system(format!("{} failed while in use", self.label), error)
        }
    }

    /// Returns the file, for reading and writing packets.
    pub(super) const fn file(&self) -> &File {
        &self.file
    }
}

impl AsFd for TapDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for TapDevice {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            before.put_back(&self.interface, &self.file);
        }
    }
}

impl Before {
    fn read(interface: &Interface, file: &File) -> Result<Self, DeviceError> {
        let header_bytes =
            offload::header_bytes(file.as_fd()).map_err(|e| fault::opening(interface.name(), e))?;
        let (mtu, queue_packets) = (interface.mtu()?, interface.queue_packets()?);
        Ok(Self { mtu, up: interface.is_up()?, queue_packets, header_bytes })
    }

    /// Restores each setting on its own: if one fails (the interface may be gone), the next are still tried.
    fn put_back(&self, interface: &Interface, file: &File) {
        let _unless_gone = offload::disable(file.as_fd());
        let _unless_gone = offload::set_header_bytes(file.as_fd(), self.header_bytes);
        let _unless_gone = interface.set_mtu(self.mtu);
        let _unless_gone = interface.set_up(self.up);
        let _unless_gone = interface.set_queue_packets(self.queue_packets);
    }
}

pub(super) fn open_tun(label: &str) -> Result<File, DeviceError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    options.open(TUN_DEVICE).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => {
                "load the module with `modprobe tun`, or give the device to the container"
            }
            io::ErrorKind::PermissionDenied => "run as root, or allow this user to open it",
            _ => "the system refused",
        };
        fault::system(format!("cannot open {TUN_DEVICE} for {label}; {remedy}"), error)
    })
}

fn refused(label: &str, kind: TapKind, name: &str, error: io::Error) -> DeviceError {
    let message = match error.raw_os_error() {
        Some(libc::EBUSY) => format!(
            "cannot open {label}: another program serves `{name}`; end it or choose another name"
        ),
        Some(libc::EINVAL) => format!(
            "cannot open {label}: `{name}` is an interface of another kind than {kind}; choose \
             another name"
        ),
        _ => return fault::opening(label, error),
    };
    fault::system(message, error)
}
