//! Row of the device kind `packet` in the table of kinds.

use std::cell::{Ref, RefCell};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rxo_device::DeviceError;
use rxo_frame::LinkKind;

use super::PacketSource;
use super::queue::{Place, Queue};
use super::sink::PacketPort;
use crate::device::{
    Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, DeviceSink, Origin, interface_name,
};
use crate::interface::Interface;
use crate::succession::Handed;
use crate::{fault, sys};

/// The kind of devices that use an existing interface by packet sockets.
pub(crate) const KIND: DeviceKind = DeviceKind {
    prefix: "packet",
    placeholder: "IFNAME",
    interface: Some(Origin::Existing),
    link: Some(LinkKind::Ethernet),
    check_name: interface_name,
    survey,
    attach: |name| attach(name, 1),
    inherit: Some(inherit),
    queues: Some(attach),
};

/// Checks that the interface exists and is up. Returns the interface's MTU, in bytes.
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
    Ok(Box::new(Handle::new(name, queues, Vec::new())))
}

fn inherit(
    name: &DeviceName,
    handed: Handed,
    count: u32,
) -> Result<Box<dyn DeviceHandle>, DeviceError> {
    let Handed { files, numbers } = handed;
    fault::check_queue_count(name, files.len() / 2, count)?;
    let mut files = files.into_iter();
    let sockets = std::iter::from_fn(|| Some([files.next()?, files.next()?]));
    let (sizes, _) = numbers.as_chunks::<2>();
    let queues =
        sockets.zip(sizes).map(|(sockets, size)| Queue::inherit(sockets, *size).map(Arc::new));
    let queues = queues.collect::<io::Result<_>>();
    let queues = queues.map_err(|error| fault::opening(&name.to_string(), error))?;
    Ok(Box::new(Handle::new(name, count, queues)))
}

/// The handle of a packet device. It stores the name, because the interface may be deleted, and another interface
/// may get the name. It stores the sockets, so that a device that is opened again continues where it stopped.
#[derive(Debug)]
struct Handle {
    label: String,
    name: String,
    count: u32,
    /// The queues of the device; empty until it is first opened.
    queues: RefCell<Vec<Arc<Queue>>>,
}

impl Handle {
    fn new(name: &DeviceName, count: u32, queues: Vec<Arc<Queue>>) -> Self {
        let (label, name) = (name.to_string(), name.name().to_owned());
        Self { label, name, count, queues: RefCell::new(queues) }
    }

    fn devices(&self, options: DeviceOptions) -> Result<Vec<Device>, DeviceError> {
        let mut queues = self.queues.borrow_mut();
        if queues.is_empty() || queues.iter().any(|queue| queue.is_deleted()) {
            queues.clear();
            return self.open_anew(options, &mut queues);
        }
        let sources = PacketSource::of_queues(&self.label, &queues, options.packet)?;
        let ports = PacketPort::of_queues(&self.label, &queues)?;
        Ok(sources.into_iter().zip(ports).map(device).collect())
    }

    fn open_anew(
        &self,
        options: DeviceOptions,
        queues: &mut Vec<Arc<Queue>>,
    ) -> Result<Vec<Device>, DeviceError> {
        let sources = match self.count {
            1 => vec![PacketSource::open(&self.name, options.packet)?],
            count => PacketSource::open_shards(&self.name, options.packet, count)?,
        };
        let ports = PacketPort::open_queues(&self.name, self.count)?;
        let devices = sources.into_iter().zip(ports).map(|(source, port)| {
            let (socket, ring) = source.parts();
            let queue = Arc::new(Queue::new(socket, ring, port.socket()?));
            queues.push(Arc::clone(&queue));
            Ok(device((source.leaving_to(queue), port)))
        });
        devices.collect()
    }

    /// Returns the queues of a device that is open.
    fn open_queues(&self) -> io::Result<Ref<'_, Vec<Arc<Queue>>>> {
        let queues = self.queues.borrow();
        if queues.is_empty() { Err(io::ErrorKind::NotConnected.into()) } else { Ok(queues) }
    }
}

fn device((source, port): (PacketSource, PacketPort)) -> Device {
    Device { source: Box::new(source), sink: DeviceSink::new(port) }
}

impl DeviceHandle for Handle {
    fn open(&self, options: DeviceOptions) -> Result<Device, DeviceError> {
        let device = self.devices(options)?.pop();
        device.ok_or_else(|| DeviceError::Gone(self.label.clone()))
    }

    fn open_queues(&self, options: DeviceOptions) -> Result<Vec<Device>, DeviceError> {
        self.devices(options)
    }

    fn interface(&self) -> Option<u32> {
        let queues = self.queues.borrow();
        u32::try_from(sys::bound_interface(queues.first()?.source.as_fd()).ok()?).ok()
    }

    fn hand_over(&self) -> io::Result<Handed> {
        let mut handed = Handed::default();
        self.open_queues()?.iter().try_for_each(|queue| queue.hand_over(&mut handed))?;
        Ok(handed)
    }

    fn position(&self) -> io::Result<Handed> {
        let numbers = self.open_queues()?.iter().flat_map(|it| it.place().to_numbers()).collect();
        Ok(Handed { files: Vec::new(), numbers })
    }

    fn go_on_at(&self, position: Handed) -> io::Result<()> {
        let queues = self.open_queues()?;
        let (places, _) = position.numbers.as_chunks::<{ Place::NUMBERS }>();
        if places.len() != queues.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        for (queue, numbers) in queues.iter().zip(places) {
            let place = Place::from_numbers(*numbers, queue.ring.slots());
            queue.go_on_at(place.ok_or(io::ErrorKind::InvalidData)?);
        }
        Ok(())
    }
}
