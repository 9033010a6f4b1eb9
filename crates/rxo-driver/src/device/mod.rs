//! Devices, opened by name.
//!
//! [`KINDS`] is the table of device kinds. Each row contains everything that is specific to a kind: the form of
//! its names, and the functions that check and open a device. [`DeviceSource`] and [`DeviceSink`] are the same
//! two types for every kind, so any source works with any sink. A [`Device`] has one of each.
//!
//! # Cost
//! Source and sink are trait objects that are called once per batch: [`FrameSource::receive`] for the source,
//! one submission of encoded packets for the sink. There is no dynamic dispatch per frame.
//!
//! # To add a device
//! To add a kind of device, write a module with a [`SystemSource`], a `Port`, a [`DeviceHandle`] and a row; put
//! the row into [`KINDS`].
//!
//! [`FrameSource::receive`]: rxo_device::FrameSource::receive

mod around;
mod kind;
mod name;
mod sink;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use rxo_device::{Descriptors, DeviceError, FrameSource};
use rxo_frame::Instant;

use crate::buffer::DeviceBuf;
use crate::packet::PacketOptions;
use crate::succession::Handed;
use crate::tap::SubmitMode;
use crate::vhost::GuestOptions;

pub use around::on_wire;
pub use kind::{DeviceKind, KINDS, Origin};
pub use name::DeviceName;
pub use sink::DeviceSink;

pub(crate) use kind::{Attach, AttachQueues, Inherit, interface_name};
pub(crate) use sink::Port;

/// A device of the system that is open in both directions, or the source of one device and the sink of
/// another. Source and sink belong to one thread, which may be another thread than the one that opened the
/// device.
#[derive(Debug)]
pub struct Device {
    /// The source, which receives the frames that arrive on the device.
    pub source: DeviceSource,
    /// The sink, which sends frames through the device.
    pub sink: DeviceSink,
}

impl Device {
    /// Opens both directions of the device `name`.
    ///
    /// # Errors
    /// If the device does not exist, is down or in use, or a privilege is missing; a message of one line
    /// names the cause.
    ///
    /// # Examples
    /// ```no_run
    /// use rxo_driver::{Device, DeviceOptions};
    ///
    /// let device = Device::open(&"tap:rxo0".parse()?, DeviceOptions::default())?;
    /// # Ok::<(), rxo_device::DeviceError>(())
    /// ```
    pub fn open(name: &DeviceName, options: DeviceOptions) -> Result<Self, DeviceError> {
        name.attach()?.open(options)
    }
}

/// Options for opening a device. A kind of device uses the fields that apply to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceOptions {
    /// Size and settings of a packet socket's ring.
    pub packet: PacketOptions,
    /// The system calls by which packets are written to a TAP or TUN.
    pub submit: SubmitMode,
    /// The MTU to set on a TAP or TUN, in bytes; `None` keeps the current one.
    pub mtu: Option<u32>,
    /// The features that are offered to a guest.
    pub guest: GuestOptions,
    /// `true` to bring a TAP or TUN up. While it is down, frames sent to it are dropped.
    pub bring_up: bool,
}

/// A device that is attached, open or not. An interface that rxo created exists at least as long as this
/// handle.
pub trait DeviceHandle: fmt::Debug {
    /// Opens source and sink. A device can be opened again after both were dropped.
    ///
    /// # Errors
    /// If the device is gone or down, refuses the options, or privilege is missing.
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError>;

    /// Opens all queues that were attached, in their order, each as a device that may move to another thread.
    /// The kernel or the device chooses the queue of a frame by the rule of
    /// [`PacketSource::open_shards`](crate::PacketSource::open_shards), for all kinds of devices.
    ///
    /// # Errors
    /// Returns the errors of [`DeviceHandle::open`], and an error if devices of this kind have one queue.
    fn open_queues(&self, _options: DeviceOptions) -> Result<Vec<Device>, DeviceError> {
        Err(DeviceError::Usage("this kind of device has one queue".to_owned()))
    }

    /// Answers the messages of a guest's virtual machine while source and sink are dropped. Does not block.
    /// Does nothing for other kinds of devices.
    fn attend(&self) {}

    /// Returns the descriptors and numbers by which another process attaches to this device
    /// ([`DeviceName::inherit`]). The device is open and may be in use.
    ///
    /// # Errors
    /// If the device cannot be handed over.
    fn hand_over(&self) -> io::Result<Handed> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the position at which source and sink have stopped. Before this call, drop the source or call
    /// [`leave`](SystemSource::leave) on it. Afterwards the device belongs to the process that continues with it
    /// ([`go_on_at`](Self::go_on_at)). This process may use the device again only if that process has failed.
    ///
    /// # Errors
    /// If the device cannot be handed over now.
    fn position(&self) -> io::Result<Handed> {
        Ok(Handed::default())
    }

    /// Makes source and sink, which are open and not used yet, continue at the position at which those of another
    /// process have stopped.
    ///
    /// # Errors
    /// If the position does not fit the device, or the system refuses.
    fn go_on_at(&self, _position: Handed) -> io::Result<()> {
        Ok(())
    }

    /// Returns the index of the device's interface; `None` if the device is not open or has none.
    fn interface(&self) -> Option<u32> {
        None
    }

    /// Returns a descriptor that keeps in existence an interface that rxo created: the kernel removes the
    /// interface when the last such descriptor is closed. `None` for other devices.
    fn kept(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The source of a device of any kind, as a trait object.
pub type DeviceSource = Box<dyn SystemSource>;

/// The operations of a system device's source beyond [`FrameSource`].
pub trait SystemSource: FrameSource<Buffer = DeviceBuf> + Descriptors + fmt::Debug + Send {
    /// Discards the frames that arrived before `instant`, because the kernel's stack received them. Call it
    /// before the first [`receive`](FrameSource::receive). A device that only rxo reads has nothing to
    /// discard.
    fn discard_before(&mut self, _instant: Instant) {}

    /// Passes the position at which this source has stopped to the device's [handle](DeviceHandle::position), as
    /// dropping the source does, but does not free the source's memory, which would take milliseconds. All frames
    /// of the source must have been dropped before. Afterwards the source may only be dropped.
    fn leave(&mut self) {}

    /// Returns the receive method, such as `AF_XDP, copy mode`; `None` if devices of this kind have only one.
    fn access(&self) -> Option<&'static str> {
        None
    }

    /// Returns the Ethernet address that a host on this device must use; `None` if it may choose one.
    fn hardware_address(&self) -> Option<[u8; 6]> {
        None
    }
}
