//! Devices by name.
//!
//! [`KINDS`] is the table of device kinds, and a row of it is everything that the rest of rxo knows
//! of a kind: what its names look like, how one is checked, and how it is opened: as a source of
//! frames, as a sink, or both ways. [`DeviceSource`] and [`DeviceSink`] are the same two types for
//! every kind, so any source goes with any sink. A [`Device`] has one of each.
//!
//! # Cost
//! Both ends are dispatched once a batch: [`FrameSource::receive`] for the source, one submission of
//! encoded packets for the sink. Nothing is dispatched for a frame.
//!
//! # To add a device
//! Write a module with a [`SystemSource`], a `Port`, a [`DeviceHandle`] and a row; put the row into
//! [`KINDS`]. A device that only gives frames, or only takes them, needs no handle, and only one of
//! the first two.
//!
//! [`FrameSource::receive`]: rxo_device::FrameSource::receive

mod around;
mod kind;
mod name;
mod sink;
#[cfg(test)]
mod tests;

use std::fmt;
use std::os::fd::BorrowedFd;

use rxo_device::{Descriptors, DeviceError, FrameSource};
use rxo_frame::Instant;

use crate::buffer::DeviceBuf;
use crate::packet::PacketOptions;
use crate::tap::SubmitMode;
use crate::vhost::GuestOptions;

pub use around::on_wire;
pub use kind::{DeviceKind, KINDS, Origin};
pub use name::DeviceName;
pub use sink::DeviceSink;

pub(crate) use kind::{Attach, Ends, interface_name};
pub(crate) use sink::Port;

/// A device of the system, open both ways, or the source of one beside the sink of another. It
/// belongs to the thread that opened it.
#[derive(Debug)]
pub struct Device {
    /// Gives what arrives on it.
    pub source: DeviceSource,
    /// Takes what leaves by it.
    pub sink: DeviceSink,
}

impl Device {
    /// Opens the device `name` both ways.
    ///
    /// # Errors
    /// If it has one direction only, does not exist, is down or taken, or privilege is missing; one
    /// line says which.
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

/// How a device is opened. A kind uses the fields that it knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceOptions {
    /// The ring of a packet socket.
    pub packet: PacketOptions,
    /// How writes to a TAP or TUN are submitted.
    pub submit: SubmitMode,
    /// The MTU that a TAP or TUN gets, in bytes; `None` leaves it as it is.
    pub mtu: Option<u32>,
    /// What a guest is offered.
    pub guest: GuestOptions,
    /// Whether a TAP or TUN is switched on. While one is down, what is sent to it is dropped.
    pub bring_up: bool,
}

/// A device that is held, open or not: an interface that rxo made lives at least as long as this.
pub trait DeviceHandle: fmt::Debug {
    /// Opens both ends. A device whose ends were dropped can be opened again.
    ///
    /// # Errors
    /// If the device is gone or down, refuses the options, or privilege is missing.
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError>;

    /// Answers the messages of a guest's machine while both ends are dropped. Does not wait. Other devices
    /// have nothing to answer.
    fn attend(&self) {}

    /// The descriptor that keeps an interface that rxo made; `None` of any other device.
    fn kept(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The source of a device of any kind.
pub type DeviceSource = Box<dyn SystemSource>;

/// What the source of a device of the system does beyond [`FrameSource`].
pub trait SystemSource: FrameSource<Buffer = DeviceBuf> + Descriptors + fmt::Debug {
    /// Discards what arrived before `instant`, because something else received it. Call it before
    /// the first [`receive`](FrameSource::receive). A device that nothing else reads has nothing to
    /// discard.
    fn discard_before(&mut self, _instant: Instant) {}

    /// The Ethernet address that a host on this device has; `None` if it may choose one.
    fn hardware_address(&self) -> Option<[u8; 6]> {
        None
    }
}
