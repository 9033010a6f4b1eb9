//! Packets to an interface, with a `virtio_net_hdr` each.

use std::os::fd::{AsFd, BorrowedFd};

use rxo_device::{DeviceError, FrameSink, SinkCapabilities, SinkCounters};
use rxo_frame::{Gather, LinkKind};

use super::socket::{Opened, lost};
use crate::interface::Interface;
use crate::transmit::{SendMmsg, Transmitter, Writer};

/// The largest IP packet the kernel segments for us, in bytes.
const LARGEST_PACKET_BYTES: u32 = 65_535;

/// Sends through an interface. The kernel completes partial checksums and cuts aggregates into
/// segments, or has the interface do it.
///
/// `PACKET_QDISC_BYPASS` is left off on purpose: on that way the kernel drops what has to be
/// segmented in software.
#[derive(Debug)]
pub struct PacketSink {
    device: String,
    interface: Interface,
    transmitter: Transmitter<SendMmsg>,
    mtu: u32,
}

impl PacketSink {
    /// Opens a sink on the interface `name`, which must be up.
    ///
    /// # Errors
    /// When there is no such interface, it is down, or privilege is missing.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        let opened = Opened::new(name)?;
        opened.enlarge_queue(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF);
        // Protocol 0: nothing arrives on this socket.
        opened.bind(0)?;
        let mtu = opened.interface.mtu()?;
        let Opened { device, interface, socket } = opened;
        let transmitter = Transmitter::new(SendMmsg::new(socket), LinkKind::Ethernet);
        Ok(Self { device, interface, transmitter, mtu })
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// One line the user should see, once; `None` when there is nothing new to say.
    pub fn take_notice(&mut self) -> Option<String> {
        self.transmitter.take_notice().map(|notice| format!("{}: {notice}", self.device))
    }
}

impl FrameSink for PacketSink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            link: LinkKind::Ethernet,
            mtu: self.mtu,
            gso_bytes: LARGEST_PACKET_BYTES,
            gathers: true,
            completes_checksums: true,
        }
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        self.transmitter.transmit(batch).map_err(|error| lost(&self.device, &self.interface, error))
    }

    fn counters(&self) -> SinkCounters {
        self.transmitter.counters()
    }
}

impl AsFd for PacketSink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transmitter.writer().descriptor()
    }
}
