//! Row of the device kind `virtio` in the table of kinds.

use std::path::Path;

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::frontend::Frontend;
use super::handshake::{DriverSettings, WANTED};
use crate::device::{Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, DeviceSink};
use crate::virtio_net::{Copying, DEFAULT_MTU, RingPort, RingSource, Shared, check_path};

/// The kind for a vhost-user back end that listens on a unix socket.
pub(crate) const KIND: DeviceKind = DeviceKind {
    prefix: "virtio",
    placeholder: "PATH",
    interface: None,
    link: Some(LinkKind::Ethernet),
    check_name: check_path,
    survey,
    attach: |name| Ok(Box::new(Handle(name.clone()))),
    inherit: None,
    queues: None,
};

/// The number of 64 KiB buffers: enough for a batch of the default budget, and for as many held frames.
const BUFFERS: usize = 512;

/// Checks that the path exists. Further checks would require a connection to the back end.
fn survey(device: &DeviceName) -> Result<Option<u32>, DeviceError> {
    if Path::new(device.name()).exists() {
        Ok(None)
    } else {
        Err(DeviceError::Usage(format!(
            "cannot open {device}; nobody listens there; start the other side first"
        )))
    }
}

/// A handle that keeps only the name of the back end's socket.
#[derive(Debug)]
struct Handle(DeviceName);

impl DeviceHandle for Handle {
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        let (label, mtu) = (self.0.to_string(), options.mtu.unwrap_or(DEFAULT_MTU));
        let settings = DriverSettings { features: WANTED, pairs: 1, mtu };
        let frontend = Frontend::open(&label, Path::new(self.0.name()), settings)?;
        Ok(device(frontend, &label, mtu))
    }
}

/// Creates the source and the sink of the device.
pub(super) fn device(frontend: Frontend, label: &str, mtu: u32) -> Device {
    let frontend = Shared::new(frontend);
    let source = Box::new(RingSource::new(&frontend, BUFFERS, mtu));
    let sink = DeviceSink::new(RingPort::new(&frontend, label, mtu, Copying::default()));
    Device { source, sink }
}
