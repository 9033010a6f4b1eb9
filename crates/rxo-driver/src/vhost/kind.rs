//! Row of the device kind `vhost` in the table of kinds.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::backend::Backend;
use crate::device::{Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, DeviceSink};
use crate::fault;
use crate::listener::{Access, Listener};
use crate::succession::Handed;
use crate::virtio_net::{
    Copying, DEFAULT_MTU, RingPort, RingSource, Shared, Side as _, check_path,
};

/// The kind for a guest that connects to a unix socket.
pub(crate) const KIND: DeviceKind = DeviceKind {
    prefix: "vhost",
    placeholder: "PATH",
    interface: None,
    link: Some(LinkKind::Ethernet),
    check_name: check_path,
    survey,
    attach: |name| Ok(Box::new(Handle::new(name)?)),
    inherit: Some(|name, handed, queues| {
        fault::check_queue_count(name, 1, queues)?;
        Ok(Box::new(Handle::inherit(name, handed)?))
    }),
    queues: None,
};

/// The number of 64 KiB buffers: enough for two batches of the default budget.
const BUFFERS: usize = 128;

/// Checks that no other process listens at the path. Returns `None`, because the MTU comes from the options.
fn survey(device: &DeviceName) -> Result<Option<u32>, DeviceError> {
    Listener::check(&device.to_string(), Path::new(device.name())).map(|()| None)
}

/// A handle that owns the bound socket.
#[derive(Debug)]
struct Handle {
    label: String,
    backend: RefCell<State>,
}

/// The state of the device: its socket before the first opening, and the device after it.
#[derive(Debug)]
enum State {
    /// The listening socket; `None` once the device was opened with it.
    Bound(Option<Listener>),
    Open(Shared<Backend>, u32, Copying),
}

impl Handle {
    fn new(name: &DeviceName) -> Result<Self, DeviceError> {
        let label = name.to_string();
        let listener = Listener::bind(&label, Path::new(name.name()), Access::ByUmask)?;
        Ok(Self { label, backend: RefCell::new(State::Bound(Some(listener))) })
    }

    /// Attaches to a device that another process hands over.
    fn inherit(name: &DeviceName, handed: Handed) -> Result<Self, DeviceError> {
        let label = name.to_string();
        let listener = handed.files.into_iter().next();
        let listener = listener.ok_or_else(|| DeviceError::Gone(label.clone()))?;
        let listener = Listener::inherit(listener, Path::new(name.name()));
        Ok(Self { label, backend: RefCell::new(State::Bound(Some(listener))) })
    }

    /// Calls `with` with the backend of a device that is open.
    fn with_backend<A>(&self, with: impl FnOnce(&mut Backend) -> io::Result<A>) -> io::Result<A> {
        match &*self.backend.borrow() {
            State::Open(backend, ..) => {
                with(&mut *backend.try_lock().ok_or(io::ErrorKind::WouldBlock)?)
            }
            State::Bound(..) => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl DeviceHandle for Handle {
    /// Opens the device. A device that is opened again keeps its front end, its MTU and the offered features. If
    /// a hanging thread still holds the lock of the device, users of the new source and sink wait for that
    /// thread.
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        let mut state = self.backend.borrow_mut();
        if let State::Bound(listener) = &mut *state {
            let mtu = options.mtu.unwrap_or(DEFAULT_MTU);
            let listener = listener.take().ok_or_else(|| DeviceError::Gone(self.label.clone()))?;
            let backend = Backend::new(&self.label, listener, mtu, options.guest)?;
            let copying = backend.copying();
            *state = State::Open(Shared::new(backend), mtu, copying);
        }
        let State::Open(backend, mtu, copying) = &*state else {
            return Err(DeviceError::Gone(self.label.clone()));
        };
        let source = Box::new(RingSource::new(backend, BUFFERS, *mtu));
        let sink = DeviceSink::new(RingPort::new(backend, &self.label, *mtu, *copying));
        Ok(Device { source, sink })
    }

    /// Returns the listening socket; it may be handed over while the device is in use, because it never changes.
    fn hand_over(&self) -> io::Result<Handed> {
        self.with_backend(|backend| Ok(Handed::of_files(vec![backend.listener()?])))
    }

    /// Returns the connection of the front end, with its settings and the positions of its rings.
    fn position(&self) -> io::Result<Handed> {
        self.with_backend(|backend| Ok(Handed::of_files(backend.hand_over()?)))
    }

    fn go_on_at(&self, position: Handed) -> io::Result<()> {
        let mut files = position.files.into_iter();
        let sockets = files.next().zip(files.next());
        sockets.map_or(Ok(()), |(stream, settings)| {
            self.with_backend(|backend| backend.succeed(stream.into(), settings.into()))
        })
    }

    /// Answers messages of the virtual machine monitor, because the monitor and its guest wait for the replies.
    /// Frames of the guest stay in its rings until the device is opened again. Does nothing if another thread
    /// holds the lock of the device.
    fn attend(&self) {
        if let State::Open(backend, ..) = &*self.backend.borrow()
            && let Some(mut backend) = backend.try_lock()
        {
            backend.attend();
        }
    }
}
