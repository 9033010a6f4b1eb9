//! The row of `vhost:PATH` in the table of device kinds.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::backend::Backend;
use crate::device::{
    Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, DeviceSink, Ends,
};
use crate::listener::{Access, Listener};
use crate::virtio_net::{DEFAULT_MTU, RingPort, RingSource, Side as _, check_path};

/// A guest behind a unix socket.
pub(crate) const KIND: DeviceKind = DeviceKind {
    prefix: "vhost",
    placeholder: "PATH",
    interface: None,
    link: Some(LinkKind::Ethernet),
    check_name: check_path,
    survey,
    ends: Ends::Both(|name| Ok(Box::new(Handle::new(name)?))),
};

/// Buffers of 64 KiB: two default budgets.
const BUFFERS: usize = 128;

/// Nobody else may listen there. The MTU is what the options say.
fn survey(device: &DeviceName) -> Result<Option<u32>, DeviceError> {
    Listener::check(&device.to_string(), Path::new(device.name())).map(|()| None)
}

/// A bound socket.
#[derive(Debug)]
struct Handle {
    label: String,
    backend: RefCell<State>,
}

/// The device before and after its first opening.
#[derive(Debug)]
enum State {
    Bound(Option<Listener>),
    Open(Rc<RefCell<Backend>>, u32),
}

impl Handle {
    fn new(name: &DeviceName) -> Result<Self, DeviceError> {
        let label = name.to_string();
        let listener = Listener::bind(&label, Path::new(name.name()), Access::ByUmask)?;
        Ok(Self { label, backend: RefCell::new(State::Bound(Some(listener))) })
    }
}

impl DeviceHandle for Handle {
    /// Opened again, the device has the same front end, the same MTU and offers the same.
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        let mut state = self.backend.borrow_mut();
        if let State::Bound(listener) = &mut *state {
            let mtu = options.mtu.unwrap_or(DEFAULT_MTU);
            let listener = listener.take().ok_or_else(|| DeviceError::Gone(self.label.clone()))?;
            let backend = Backend::new(&self.label, listener, mtu, options.guest)?;
            *state = State::Open(Rc::new(RefCell::new(backend)), mtu);
        }
        let State::Open(backend, mtu) = &*state else {
            return Err(DeviceError::Gone(self.label.clone()));
        };
        let source = Box::new(RingSource::new(backend, BUFFERS, *mtu));
        let copying = backend.borrow().copying();
        let sink = DeviceSink::new(RingPort::new(backend, &self.label, *mtu, copying));
        Ok(Device { source, sink })
    }

    /// A machine monitor waits for its replies, and its guest with it. Frames of the guest stay in its rings
    /// until the device is opened again.
    fn attend(&self) {
        if let State::Open(backend, _) = &*self.backend.borrow() {
            backend.borrow_mut().attend();
        }
    }
}
