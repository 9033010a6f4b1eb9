//! Setters of the link layer, and of the device's metadata.

use core::num::NonZeroU16;

use rxo_frame::{ChecksumStatus, Gso, GsoKind, LinkKind};

use super::Packet;

const DOT1Q: u16 = 0x8100;
/// The shortest Ethernet frame, without its check sequence.
const MIN_FRAME_BYTES: usize = 60;

impl Packet {
    /// Adds an 802.1Q tag inside the existing ones, with this identifier and priority 0.
    #[must_use]
    pub fn vlan(self, id: u16) -> Self {
        self.tag(DOT1Q, id)
    }

    /// Adds a tag inside the existing ones.
    #[must_use]
    pub fn tag(mut self, tpid: u16, tci: u16) -> Self {
        self.tags.push((tpid, tci));
        self
    }

    /// Removes the link layer: the frame begins with its IP header.
    #[must_use]
    pub fn raw_ip(mut self) -> Self {
        self.link = LinkKind::RawIp;
        self
    }

    /// Pads a short frame to 60 bytes with zeros, as Ethernet devices do.
    #[must_use]
    pub fn padded(self) -> Self {
        self.padded_with(0)
    }

    /// Pads a short frame to 60 bytes with `byte`.
    #[must_use]
    pub fn padded_with(mut self, byte: u8) -> Self {
        self.padding = byte;
        self.pad_to = MIN_FRAME_BYTES;
        self
    }

    /// Removes `bytes` from the end of the finished frame.
    #[must_use]
    pub fn cut(mut self, bytes: usize) -> Self {
        self.cut = bytes;
        self
    }

    /// Marks the checksum as verified by the device.
    #[must_use]
    pub fn verified(mut self) -> Self {
        self.status = ChecksumStatus::Verified;
        self
    }

    /// Makes the checksum partial: the field holds only the sum of the pseudo-header.
    #[must_use]
    pub fn partial(mut self) -> Self {
        let offset = if self.body == super::Body::Udp { 6 } else { 16 };
        self.status = ChecksumStatus::Partial { start: 0, offset };
        self
    }

    /// Marks a partial checksum that is not the packet's own: it starts `bytes` after the transport header,
    /// with its field at `offset` from there. The packet's own checksum stays unchanged.
    #[must_use]
    pub fn partial_elsewhere(mut self, bytes: u16, offset: u16) -> Self {
        self.elsewhere = Some((bytes, offset));
        self
    }

    /// Makes the packet a GSO frame with segments of `size` bytes and a partial checksum, as a local sender
    /// sends it.
    #[must_use]
    pub fn already_aggregated(self, size: u16) -> Self {
        let mut whole = self.partial();
        let kind = match (whole.is_datagram(), whole.v6) {
            (true, _) => GsoKind::Udp,
            (false, true) => GsoKind::TcpV6,
            (false, false) => GsoKind::TcpV4,
        };
        whole.gso = NonZeroU16::new(size).map(|size| Gso::new(kind, size));
        whole
    }
}
