//! Sink of a packet socket: sends packets to an interface, each behind a `virtio_net_hdr`.

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

/// The largest IP packet that the kernel segments, in bytes.
const LARGEST_PACKET_BYTES: u32 = 65_535;

impl DeviceSink {
    /// Opens a sink on the interface `name`, which must be up. The kernel completes partial checksums and
    /// segments aggregates, or lets the interface do it.
    ///
    /// `PACKET_QDISC_BYPASS` stays off on purpose: with it the kernel drops packets that must be segmented in
    /// software.
    ///
    /// # Errors
    /// If there is no such interface, it is down, or privilege is missing.
    pub fn packet(name: &str) -> Result<Self, DeviceError> {
        let opened = Opened::new(name)?;
        opened.enlarge_queue(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF);
        // Protocol 0: this socket receives nothing.
        opened.bind(0)?;
        let mtu = opened.interface.mtu()?;
        let Opened { device, interface, socket } = opened;
        // If no descriptors are left, departures are not counted.
        let departures = interface.index().ok().and_then(|index| Departures::of(index).ok());
        let writer = SendMmsg::new(socket);
        Ok(Self::new(PacketPort { device, interface, writer, mtu, departures }))
    }
}

/// The port of a packet socket that sends.
#[derive(Debug)]
struct PacketPort {
    device: String,
    interface: Interface,
    writer: SendMmsg,
    mtu: u32,
    /// The counter of sent packets, opened together with the device because a confined process may not open
    /// it.
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

    /// Returns the bytes that the kernel has not freed: in the interface's queue, in the card's ring, or on
    /// the way through a veth.
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
