//! Rows of the device kinds `tap` and `tun` in the table of kinds.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use rxo_device::DeviceError;

use super::{Tap, TapKind};
use crate::device::{
    Attach, AttachQueues, Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, Inherit,
    Origin, interface_name,
};
use crate::interface::Interface;
use crate::succession::Handed;

/// The kind that exchanges Ethernet frames with the host's stack.
pub(crate) const TAP: DeviceKind = row(
    TapKind::Tap,
    "tap",
    |device| Ok(Box::new(Tap::open(device.name(), TapKind::Tap)?)),
    |device, queues| Ok(Box::new(Tap::open_queues(device.name(), TapKind::Tap, queues)?)),
    |device, handed, queues| Ok(Box::new(Tap::inherit(device, TapKind::Tap, (handed, queues))?)),
);

/// The kind that exchanges IP packets with the host's stack.
pub(crate) const TUN: DeviceKind = row(
    TapKind::Tun,
    "tun",
    |device| Ok(Box::new(Tap::open(device.name(), TapKind::Tun)?)),
    |device, queues| Ok(Box::new(Tap::open_queues(device.name(), TapKind::Tun, queues)?)),
    |device, handed, queues| Ok(Box::new(Tap::inherit(device, TapKind::Tun, (handed, queues))?)),
);

const fn row(
    kind: TapKind,
    prefix: &'static str,
    attach: Attach,
    queues: AttachQueues,
    inherit: Inherit,
) -> DeviceKind {
    DeviceKind {
        prefix,
        placeholder: "NAME",
        interface: Some(Origin::Made),
        link: Some(kind.link()),
        check_name: interface_name,
        survey,
        attach,
        inherit: Some(inherit),
        queues: Some(queues),
    }
}

/// Returns the MTU of an existing interface; `None` if rxo will create it.
fn survey(device: &DeviceName) -> Result<Option<u32>, DeviceError> {
    match Interface::find(device.name()) {
        Err(DeviceError::Usage(_)) => Ok(None),
        found => found?.mtu().map(Some),
    }
}

impl Tap {
    fn set_up(&self, options: DeviceOptions) -> Result<(), DeviceError> {
        if let Some(mtu) = options.mtu {
            self.set_mtu(mtu)?;
        }
        if options.bring_up {
            self.interface().set_up(true)?;
        }
        Ok(())
    }
}

impl DeviceHandle for Tap {
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        self.set_up(options)?;
        Ok(Device { source: Box::new(self.source()?), sink: self.sink(options.submit)? })
    }

    fn open_queues(&self, options: DeviceOptions) -> Result<Vec<Device>, DeviceError> {
        self.set_up(options)?;
        self.devices(options.submit)
    }

    fn hand_over(&self) -> io::Result<Handed> {
        Self::hand_over(self)
    }

    fn position(&self) -> io::Result<Handed> {
        Ok(Self::position(self))
    }

    fn go_on_at(&self, position: Handed) -> io::Result<()> {
        Self::go_on_at(self, &position);
        Ok(())
    }

    fn interface(&self) -> Option<u32> {
        u32::try_from(Self::interface(self).index().ok()?).ok()
    }

    fn kept(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl Device {
    /// Opens source and sink of a TAP or TUN.
    ///
    /// # Errors
    /// If the interface is gone or refuses the options.
    pub fn of_tap(tap: &Tap, options: DeviceOptions) -> Result<Self, DeviceError> {
        DeviceHandle::open(tap, options)
    }
}
