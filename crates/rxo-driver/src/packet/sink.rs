//! Packets to an interface, with a `virtio_net_hdr` each.

use std::io;
use std::os::fd::BorrowedFd;

use rxo_device::{Descriptors, DeviceError, SinkCapabilities};
use rxo_frame::LinkKind;

use super::departures::Departures;
use super::socket::{Opened, lost};
use crate::device::{DeviceSink, Port};
use crate::interface::Interface;
use crate::sys;
use crate::transmit::batch::Sealed;
use crate::transmit::{SendMmsg, Writer, Written};

/// The largest IP packet that the kernel segments for us, in bytes.
const LARGEST_PACKET_BYTES: u32 = 65_535;

impl DeviceSink {
    /// Opens a sink on the interface `name`, which must be up. The kernel completes partial checksums
    /// and segments aggregates, or has the interface do it.
    ///
    /// `PACKET_QDISC_BYPASS` is left off on purpose: with it the kernel drops what has to be
    /// segmented in software.
    ///
    /// # Errors
    /// If there is no such interface, it is down, or privilege is missing.
    pub fn packet(name: &str) -> Result<Self, DeviceError> {
        let opened = Opened::new(name)?;
        opened.enlarge_queue(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF);
        // Protocol 0: nothing arrives on this socket.
        opened.bind(0)?;
        let mtu = opened.interface.mtu()?;
        let Opened { device, interface, socket } = opened;
        // Without descriptors left for it, nothing is compared.
        let departures = interface.index().ok().and_then(|index| Departures::of(index).ok());
        let writer = SendMmsg::new(socket);
        Ok(Self::new(PacketPort { device, interface, writer, mtu, departures }))
    }
}

/// A packet socket that is written to.
#[derive(Debug)]
struct PacketPort {
    device: String,
    interface: Interface,
    writer: SendMmsg,
    mtu: u32,
    /// Opened with the device: a confined process opens nothing.
    departures: Option<Departures>,
}

impl Port for PacketPort {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            link: LinkKind::Ethernet,
            mtu: self.mtu,
            gso_bytes: LARGEST_PACKET_BYTES,
            segments_udp: true,
            segments_tunnels: false,
            gathers: true,
            completes_checksums: true,
            expands_acks: false,
        }
    }

    fn label(&self) -> &str {
        &self.device
    }

    fn interface(&self) -> Option<&Interface> {
        Some(&self.interface)
    }

    fn lost(&self, error: io::Error) -> Option<DeviceError> {
        lost(&self.device, self.writer.socket(), error)
    }

    fn is_batched(&self) -> bool {
        true
    }

    /// What the kernel has not freed: in the interface's queue, in the card's ring, or on its way through a veth.
    fn queued_bytes(&self) -> Option<u64> {
        sys::unsent_bytes(self.writer.socket()).ok()
    }

    fn departed(&mut self) -> Option<u64> {
        if self.queued_bytes() != Some(0) {
            return None;
        }
        self.departures.as_mut()?.read()
    }
}

impl Writer for PacketPort {
    fn write(&mut self, batch: &Sealed<'_, '_>, from: usize) -> Written {
        self.writer.write(batch, from)
    }
}

impl Descriptors for PacketPort {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.writer.socket());
    }
}
