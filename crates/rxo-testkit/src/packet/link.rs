//! Setters of the link layer, and of what the device says.

use core::num::NonZeroU16;

use rxo_frame::{ChecksumStatus, Gso, GsoKind, LinkKind};

use super::Packet;

const DOT1Q: u16 = 0x8100;
/// The shortest frame that may cross an Ethernet, without its check sequence.
const MIN_FRAME_BYTES: usize = 60;

impl Packet {
    /// Adds a tag inside those already there: 802.1Q, this identifier, priority 0.
    #[must_use]
    pub fn vlan(self, id: u16) -> Self {
        self.tag(DOT1Q, id)
    }

    /// Adds a tag inside those already there.
    #[must_use]
    pub fn tag(mut self, tpid: u16, tci: u16) -> Self {
        self.tags.push((tpid, tci));
        self
    }

    /// No link layer: the frame begins with its IP header.
    #[must_use]
    pub fn raw_ip(mut self) -> Self {
        self.link = LinkKind::RawIp;
        self
    }

    /// Fills a short frame up to 60 bytes with zeros, as Ethernet devices do.
    #[must_use]
    pub fn padded(self) -> Self {
        self.padded_with(0)
    }

    /// Fills a short frame up to 60 bytes with `byte`.
    #[must_use]
    pub fn padded_with(mut self, byte: u8) -> Self {
        self.padding = byte;
        self.pad_to = MIN_FRAME_BYTES;
        self
    }

    /// Cuts `bytes` from the end of the finished frame.
    #[must_use]
    pub fn cut(mut self, bytes: usize) -> Self {
        self.cut = bytes;
        self
    }

    /// The device says that the checksum is right.
    #[must_use]
    pub fn verified(mut self) -> Self {
        self.status = ChecksumStatus::Verified;
        self
    }

    /// The checksum field holds the pseudo-header sum only, and the device says so.
    #[must_use]
    pub fn partial(mut self) -> Self {
        let start = self.transport_at() as u16;
        let offset = if self.body == super::Body::Udp { 6 } else { 16 };
        self.status = ChecksumStatus::Partial { start, offset };
        self
    }

    /// The frame already is several segments of `size` bytes in one, as a local sender hands it
    /// over; its checksum is partial. Call it after everything that moves the TCP header.
    #[must_use]
    pub fn already_aggregated(self, size: u16) -> Self {
        let mut whole = self.partial();
        let kind = if whole.v6 { GsoKind::TcpV6 } else { GsoKind::TcpV4 };
        whole.gso = NonZeroU16::new(size).map(|size| Gso { kind, ecn: false, size });
        whole
    }
}
