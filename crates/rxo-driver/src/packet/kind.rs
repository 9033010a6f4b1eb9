//! Row of the device kind `packet` in the table of kinds.

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::PacketSource;
use super::sink::PacketPort;
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
    attach: |name| attach(name, 1),
    inherit: None,
    queues: Some(attach),
};

/// Checks that the interface exists and is up. Returns its MTU.
pub(crate) fn survey(device: &DeviceName) -> Result<Option<u32>, DeviceError> {
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

fn attach(name: &DeviceName, queues: u32) -> Result<Box<dyn DeviceHandle>, DeviceError> {
    Ok(Box::new(ByName { name: name.name().to_owned(), queues }))
}

/// A handle that keeps only the name: the interface may be deleted, and another one may get the name.
#[derive(Debug)]
struct ByName {
    name: String,
    queues: u32,
}

impl DeviceHandle for ByName {
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        let source = PacketSource::open(&self.name, options.packet)?;
        Ok(Device { source: Box::new(source), sink: DeviceSink::packet(&self.name)? })
    }

    fn open_queues(&self, options: DeviceOptions) -> Result<Vec<Device>, DeviceError> {
        let sources = PacketSource::open_shards(&self.name, options.packet, self.queues)?;
        let ports = PacketPort::open_queues(&self.name, self.queues)?;
        let queues = sources
            .into_iter()
            .zip(ports)
            .map(|(source, port)| Device { source: Box::new(source), sink: DeviceSink::new(port) });
        Ok(queues.collect())
    }
}
