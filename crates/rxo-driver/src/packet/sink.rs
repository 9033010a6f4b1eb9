//! Sink of a packet socket: sends packets to an interface, each after a `virtio_net_hdr`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rxo_device::{Descriptors, DeviceError, SinkCapabilities};
use rxo_frame::LinkKind;

use super::queue::Queue;
use super::sent::Sent;
use super::socket::{Opened, bound, device_error};
use crate::device::{DeviceSink, Port};
use crate::interface::Interface;
use crate::transmit::batch::Sealed;
use crate::transmit::{SendMmsg, Writer, Written};
use crate::{fault, sys};

impl DeviceSink {
    /// Opens a sink on the interface `name`, which must be up. The kernel completes partial checksums and
    /// segments aggregates, or offloads this work to the interface.
    ///
    /// `PACKET_QDISC_BYPASS` stays off on purpose: with it the kernel drops packets that must be segmented in
    /// software.
    ///
    /// # Errors
    /// If there is no such interface, the interface is down, or privilege is missing.
    pub fn packet(name: &str) -> Result<Self, DeviceError> {
        PacketPort::open(name).map(Self::new)
    }
}

/// The sending port of a packet socket.
#[derive(Debug)]
pub(super) struct PacketPort {
    device: String,
    interface: Interface,
    writer: SendMmsg,
    mtu: u32,
    sent: Sent,
}

impl PacketPort {
    fn open(name: &str) -> Result<Self, DeviceError> {
        let opened = Opened::new(name)?;
        opened.enlarge_queue(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF);
        // Protocol 0: this socket receives nothing.
        opened.bind(0)?;
        let Opened { device, interface, socket } = opened;
        Self::of(device, interface, socket)
    }

    /// Creates a port that sends by `socket`, which is bound to `interface`.
    fn of(device: String, interface: Interface, socket: OwnedFd) -> Result<Self, DeviceError> {
        let (mtu, sent) = (interface.mtu()?, Sent::of(&interface));
        Ok(Self { device, interface, writer: SendMmsg::new(socket), mtu, sent })
    }

    /// Opens `queues` ports on one interface. The first port watches the interface, and accounts for the
    /// packets of all ports.
    pub(super) fn open_queues(name: &str, queues: u32) -> Result<Vec<Self>, DeviceError> {
        let all = (0..queues).map(|_| Self::open(name)).collect::<Result<_, _>>()?;
        Self::of_one_interface(all)
    }

    /// Creates the ports of the interface `device` that send by the sockets of `queues`.
    pub(super) fn of_queues(device: &str, queues: &[Arc<Queue>]) -> Result<Vec<Self>, DeviceError> {
        let port = |queue: &Arc<Queue>| {
            let socket = queue.sink.try_clone().map_err(|error| fault::opening(device, error))?;
            Self::of(device.to_owned(), bound(device, socket.as_fd())?, socket)
        };
        Self::of_one_interface(queues.iter().map(port).collect::<Result<_, _>>()?)
    }

    fn of_one_interface(mut all: Vec<Self>) -> Result<Vec<Self>, DeviceError> {
        if let Some((first, others)) = all.split_first_mut() {
            for other in others {
                first.sent.add_queue(other.socket()?, &mut other.sent);
            }
        }
        Ok(all)
    }

    /// Returns a second descriptor of the socket.
    pub(super) fn socket(&self) -> Result<OwnedFd, DeviceError> {
        let socket = self.writer.socket().try_clone_to_owned();
        socket.map_err(|error| fault::opening(&self.device, error))
    }
}

impl Port for PacketPort {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities::with_gso(LinkKind::Ethernet, self.mtu)
    }

    fn label(&self) -> &str {
        &self.device
    }

    fn interface(&self) -> Option<&Interface> {
        self.sent.is_first().then_some(&self.interface)
    }

    fn device_error(&self, error: io::Error) -> Option<DeviceError> {
        device_error(&self.device, self.writer.socket(), error)
    }

    fn is_batched(&self) -> bool {
        true
    }

    /// Returns the number of sent bytes that the kernel has not freed: in the interface's queue, in the
    /// card's ring, or in transit through a veth. Returns `None` if the kernel does not report it.
    fn queued_bytes(&self) -> Option<u64> {
        sys::unsent_bytes(self.writer.socket()).ok()
    }

    fn departed(&mut self) -> Option<u64> {
        let is_empty = self.queued_bytes() == Some(0);
        self.sent.departed().filter(|_| is_empty)
    }
}

impl Writer for PacketPort {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        let written = self.writer.write(batch, from);
        self.sent.count(written.sent);
        written
    }
}

impl Descriptors for PacketPort {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.writer.socket());
    }
}
