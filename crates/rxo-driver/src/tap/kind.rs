//! The rows of TAP and TUN in the table of device kinds.

use std::os::fd::BorrowedFd;

use rxo_device::DeviceError;

use super::{Tap, TapKind};
use crate::device::{
    Attach, Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, Ends, Origin,
    interface_name,
};
use crate::interface::Interface;

/// Ethernet frames from and to the host's stack.
pub(crate) const TAP: DeviceKind =
    row(TapKind::Tap, "tap", |device| Ok(Box::new(Tap::open(device.name(), TapKind::Tap)?)));

/// IP packets from and to the host's stack.
pub(crate) const TUN: DeviceKind =
    row(TapKind::Tun, "tun", |device| Ok(Box::new(Tap::open(device.name(), TapKind::Tun)?)));

const fn row(kind: TapKind, prefix: &'static str, attach: Attach) -> DeviceKind {
    DeviceKind {
        prefix,
        placeholder: "NAME",
        interface: Some(Origin::Made),
        link: Some(kind.link()),
        check_name: interface_name,
        survey,
        ends: Ends::Both(attach),
    }
}

/// An interface that does not exist yet will be made.
fn survey(device: &DeviceName) -> Result<Option<u32>, DeviceError> {
    match Interface::find(device.name()) {
        Err(DeviceError::Usage(_)) => Ok(None),
        found => found?.mtu().map(Some),
    }
}

impl DeviceHandle for Tap {
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        if let Some(mtu) = options.mtu {
            self.set_mtu(mtu)?;
        }
        if options.bring_up {
            self.interface().set_up(true)?;
        }
        Ok(Device { source: Box::new(self.source()?), sink: self.sink(options.submit)? })
    }

    fn kept(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor())
    }
}

impl Device {
    /// Opens both ends of a TAP or TUN.
    ///
    /// # Errors
    /// If the interface is gone or refuses the options.
    pub fn of_tap(tap: &Tap, options: DeviceOptions) -> Result<Self, DeviceError> {
        DeviceHandle::open(tap, options)
    }
}
