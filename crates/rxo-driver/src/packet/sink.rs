//! Packets to an interface, with a `virtio_net_hdr` each.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rxo_device::{DeviceError, FrameSink, SinkCapabilities, SinkCounters};
use rxo_frame::{Gather, LinkKind};

use super::socket::{Opened, lost};
use crate::interface::Interface;
use crate::link_watch::LinkWatch;
use crate::transmit::{SendMmsg, Transmitter, Writer};

/// The largest IP packet the kernel segments for us, in bytes.
const LARGEST_PACKET_BYTES: u32 = 65_535;

/// Sends through an interface; while that is down, what is sent is dropped and counted. The kernel completes partial checksums and cuts aggregates into
/// segments, or has the interface do it.
///
/// `PACKET_QDISC_BYPASS` is left off on purpose: on that way the kernel drops what has to be
/// segmented in software.
#[derive(Debug)]
pub struct PacketSink {
    device: String,
    interface: Interface,
    transmitter: Transmitter<SendMmsg>,
    watch: LinkWatch,
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
        Ok(Self { device, interface, transmitter, watch: LinkWatch::default(), mtu })
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// One line the user should see, once; `None` when there is nothing new to say. Asks the system
    /// whether the interface is up.
    pub fn take_notice(&mut self) -> Option<String> {
        let own = self.transmitter.take_notice().map(|notice| format!("{}: {notice}", self.device));
        own.or_else(|| self.watch.notice(&self.device, &self.interface))
    }

    fn or_lost(&self, sent: io::Result<()>) -> Result<(), DeviceError> {
        let lost = sent.err().and_then(|error| lost(&self.device, self.as_fd(), error));
        lost.map_or(Ok(()), Err)
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
        let sent = self.transmitter.transmit(batch);
        self.or_lost(sent)
    }

    fn counters(&self) -> SinkCounters {
        self.transmitter.counters()
    }

    fn is_blocked(&self) -> bool {
        self.transmitter.is_blocked()
    }

    fn resume(&mut self) -> Result<(), DeviceError> {
        let sent = self.transmitter.resume();
        self.or_lost(sent)
    }

    fn abandon(&mut self) {
        self.transmitter.abandon();
    }
}

impl AsFd for PacketSink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transmitter.writer().descriptor()
    }
}
