//! The row of `virtio:PATH` in the table of device kinds.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::frontend::Frontend;
use super::handshake::{WANTED, Wishes};
use crate::device::{
    Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, DeviceSink, Ends,
};
use crate::virtio_net::{Copying, DEFAULT_MTU, RingPort, RingSource, check_path};

/// A back end of vhost-user behind a unix socket.
pub(crate) const KIND: DeviceKind = DeviceKind {
    prefix: "virtio",
    placeholder: "PATH",
    interface: None,
    link: Some(LinkKind::Ethernet),
    check_name: check_path,
    survey,
    ends: Ends::Both(|name| Ok(Box::new(Handle(name.clone())))),
};

/// Buffers of 64 KiB: a default budget of frames, and as many that are held.
const BUFFERS: usize = 512;

/// There must be something at the path. To ask who, one would have to be its front end.
fn survey(device: &DeviceName) -> Result<Option<u32>, DeviceError> {
    if Path::new(device.name()).exists() {
        Ok(None)
    } else {
        Err(DeviceError::Usage(format!(
            "cannot open {device}; nobody listens there; start the other side first"
        )))
    }
}

/// The socket of a back end.
#[derive(Debug)]
struct Handle(DeviceName);

impl DeviceHandle for Handle {
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        let (label, mtu) = (self.0.to_string(), options.mtu.unwrap_or(DEFAULT_MTU));
        let wishes = Wishes { features: WANTED, pairs: 1, mtu };
        let frontend = Frontend::open(&label, Path::new(self.0.name()), wishes)?;
        Ok(device(frontend, &label, mtu))
    }
}

/// Both ends of the device.
pub(super) fn device(frontend: Frontend, label: &str, mtu: u32) -> Device {
    let frontend = Rc::new(RefCell::new(frontend));
    let source = Box::new(RingSource::new(&frontend, BUFFERS, mtu));
    let sink = DeviceSink::new(RingPort::new(&frontend, label, mtu, Copying::default()));
    Device { source, sink }
}
