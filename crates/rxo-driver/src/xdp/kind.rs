//! Row of the device kind `xdp` in the table of kinds.

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::kernel_types;
use super::open::{DeviceRequest, Unopened};
use super::program::TagFunction;
use crate::device::{
    Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, DeviceSink, Origin, interface_name,
};
use crate::packet::{self, PacketSource};

/// The kind of devices that use an existing interface by AF_XDP.
pub(crate) const KIND: DeviceKind = DeviceKind {
    prefix: "xdp",
    placeholder: "IFNAME[:QUEUE]",
    interface: Some(Origin::Existing),
    link: Some(LinkKind::Ethernet),
    check_name,
    survey: packet::survey,
    attach: |name| {
        // Read before the process is confined, because a confined process may not read the kernel's types.
        let tags = kernel_types::tag_function();
        Ok(Box::new(Handle { name: name.clone(), tags }))
    },
    // None, because the card chooses the queue of a frame, not the rule that all devices share.
    queues: None,
    inherit: None,
};

fn check_name(name: &str) -> Result<(), &'static str> {
    let (interface, queue) = name.split_once(':').unwrap_or((name, "0"));
    interface_name(interface)?;
    match queue.parse::<u16>() {
        Ok(_) if queue.bytes().all(|byte| byte.is_ascii_digit()) => Ok(()),
        _ => Err("has a queue that is no number from 0 to 65535: give one such as `eth1:0`"),
    }
}

/// A handle that stores only the name of the interface, because the interface may be deleted, and another
/// interface may get the name.
#[derive(Debug)]
struct Handle {
    name: DeviceName,
    tags: Option<TagFunction>,
}

impl DeviceHandle for Handle {
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        let (label, name) = (self.name.to_string(), self.name.name());
        let queue = self.name.rest().and_then(|queue| queue.parse().ok());
        let wanted = DeviceRequest { label: &label, name, queue, tags: self.tags };
        match wanted.open(options.packet) {
            Ok(device) => Ok(device),
            Err(Unopened::Refused(error)) => Err(error),
            // A packet ring would also receive the frames of the other queues.
            Err(Unopened::Unavailable(why)) if queue.is_some() => {
                Err(DeviceError::Usage(format!("{label}: {why}; or use packet:{name}")))
            }
            Err(Unopened::Unavailable(why)) => {
                let source = Box::new(PacketSource::open(name, options.packet)?);
                let line = format!("uses the packet ring instead of AF_XDP: {why}");
                let sink = DeviceSink::packet(name)?.with_notice(format!("{label} {line}"));
                Ok(Device { source, sink })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_an_interface_and_perhaps_a_queue() {
        for (text, name, queue) in [("xdp:eth1", "eth1", None), ("xdp:eth1:12", "eth1", Some("12"))]
        {
            let device: DeviceName = text.parse().unwrap();
            assert_eq!(
                (device.name(), device.rest(), device.to_string()),
                (name, queue, text.into())
            );
        }
        for text in [
            "xdp:",
            "xdp::0",
            "xdp:eth1:",
            "xdp:eth1:x",
            "xdp:eth1:+1",
            "xdp:eth1:70000",
            "xdp:a/b:0",
        ] {
            let line = text.parse::<DeviceName>().unwrap_err().to_string();
            assert!(line.contains(text) && line.contains("give one such as `eth1"), "{line}");
        }
    }
}
