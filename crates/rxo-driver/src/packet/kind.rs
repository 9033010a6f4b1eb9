//! Row of the device kind `packet` in the table of kinds.

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::PacketSource;
use crate::device::{
    Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, DeviceSink, Origin, interface_name,
};
use crate::fault;
use crate::interface::Interface;

/// The kind of devices that use an existing interface by packet sockets.
pub(crate) const KIND: DeviceKind = DeviceKind {
    prefix: "packet",
    placeholder: "IFNAME",
    interface: Some(Origin::Existing),
    link: Some(LinkKind::Ethernet),
    check_name: interface_name,
    survey,
    attach: |name| Ok(Box::new(ByName(name.name().to_owned()))),
};

/// Checks that the interface exists and is up. Returns its MTU.
fn survey(device: &DeviceName) -> Result<Option<u32>, DeviceError> {
    let (label, name) = (device.to_string(), device.name());
    let interface = Interface::find(name).map_err(|error| match error {
        DeviceError::Usage(_) => fault::no_such_interface(&label, name),
        other => other,
    })?;
    if !interface.is_up()? {
        return Err(fault::is_down(&label, name));
    }
    interface.mtu().map(Some)
}

/// A handle that keeps only the name: the interface may be deleted, and another one may get the name.
#[derive(Debug)]
struct ByName(String);

impl DeviceHandle for ByName {
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        let source = PacketSource::open(&self.0, options.packet)?;
        Ok(Device { source: Box::new(source), sink: DeviceSink::packet(&self.0)? })
    }
}
