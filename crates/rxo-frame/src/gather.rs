//! The interface that passes packets in several pieces to a sink.
//!
//! The engine's deliveries and plain frames implement [`Gather`], and sinks accept any `Gather`. The trait is
//! in this crate so that the receive engine and the devices do not depend on each other.

use core::num::NonZeroU16;

use crate::{ChecksumStatus, Frame, VlanTag};

/// One packet for a sink, in pieces with lifetime `'a`.
///
/// A value of this trait is a `Copy` view. The pieces stay in memory until `'a` ends, so a sink may pass them
/// to the system and wait.
pub trait Gather<'a>: Copy {
    /// Returns the checksum and segmentation metadata that the sink must pass on, or carry out itself.
    fn offload(self) -> Offload;

    /// Returns the outer VLAN tag that the sink must insert; `None` if the packet has no tag, or has the tag in
    /// its bytes.
    fn vlan(self) -> Option<VlanTag>;

    /// Returns the length of all pieces together, in bytes.
    fn byte_len(self) -> usize;

    /// Calls `visit` for each piece, in order. The first piece contains at least all headers.
    fn for_each_slice(self, visit: impl FnMut(&'a [u8]));

    /// Returns the number of original frames in this packet; for a GSO frame, the number of its segments.
    fn frame_count(self) -> usize;

    /// Calls `visit` for each of the original frames, in order. Sinks use it if the system refuses the whole
    /// packet. For a packet of one frame, visits the frame if it is in one piece; otherwise does nothing.
    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>));
}

/// The offload metadata of a packet. A sink writes it into a `virtio_net_hdr`; a sink without this header does
/// the work in software.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The status of the transport checksum in the packet's bytes.
    pub checksum: ChecksumStatus,
    /// The segmentation parameters; `None` if the packet is not a GSO frame.
    pub gso: Option<Gso>,
    /// The length of link, network and transport headers together, in bytes; 0 if unknown.
    pub header_bytes: u16,
}

/// The parameters for the segmentation of a GSO frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gso {
    /// The transport protocol and IP version of the segments.
    pub kind: GsoKind,
    /// `true` if CWR is set on the first segment only (`GSO_ECN`).
    pub ecn: bool,
    /// The payload length of every segment but the last, in bytes.
    pub size: NonZeroU16,
    /// The tunnel, if `kind` describes the headers of an inner packet; `None` if it describes the frame's own
    /// headers.
    pub tunnel: Option<GsoTunnel>,
}

impl Gso {
    /// Creates parameters for segments of `kind` with `size` bytes of payload, without a tunnel. CWR is set on all
    /// segments or on none.
    #[inline]
    #[must_use]
    pub const fn new(kind: GsoKind, size: NonZeroU16) -> Self {
        Self { kind, ecn: false, size, tunnel: None }
    }
}

/// The tunnel of a GSO frame, with the offsets of its headers. Packed in two bytes, because every frame has
/// this field.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct GsoTunnel(NonZeroU16);

/// The description of a tunnel over UDP in a virtio header (virtio 1.4, section 5.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpTunnel {
    /// The offset of the outer UDP header, in bytes from the start of the frame, 1 to 127.
    pub outer_transport: u8,
    /// The offset of the inner IP header, in bytes from the start of the frame, at most 126.
    pub inner_network: u8,
    /// `true` if the outer IP header is IPv6.
    pub is_outer_v6: bool,
    /// `true` if the outer UDP header has a checksum.
    pub has_checksum: bool,
}

impl GsoTunnel {
    /// A tunnel that no virtio header can describe: GRE, IP in IP, or UDP with longer headers.
    pub const OTHER: Self = Self(NonZeroU16::MAX);

    const V6: u16 = 1 << 14;
    const CHECKSUM: u16 = 1 << 15;

    /// Creates a tunnel over UDP; returns [`GsoTunnel::OTHER`] if an offset is out of range.
    #[must_use]
    pub const fn udp(tunnel: UdpTunnel) -> Self {
        let UdpTunnel { outer_transport, inner_network, is_outer_v6, has_checksum } = tunnel;
        let flags = is_outer_v6 as u16 * Self::V6 + has_checksum as u16 * Self::CHECKSUM;
        let offsets = ((inner_network as u16) << 7) | outer_transport as u16;
        match NonZeroU16::new(flags | offsets) {
            Some(packed) if matches!(outer_transport, 1..=127) && inner_network < 127 => {
                Self(packed)
            }
            _ => Self::OTHER,
        }
    }

    /// Returns the description of a tunnel over UDP; `None` for [`GsoTunnel::OTHER`].
    #[must_use]
    pub const fn as_udp(self) -> Option<UdpTunnel> {
        let packed = self.0.get();
        if packed == Self::OTHER.0.get() {
            return None;
        }
        Some(UdpTunnel {
            outer_transport: (packed & 0x7f) as u8,
            inner_network: ((packed >> 7) & 0x7f) as u8,
            is_outer_v6: packed & Self::V6 != 0,
            has_checksum: packed & Self::CHECKSUM != 0,
        })
    }
}

impl core::fmt::Debug for GsoTunnel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.as_udp() {
            Some(udp) => udp.fmt(f),
            None => f.write_str("Other"),
        }
    }
}

/// The kinds of GSO frames: protocol and IP version of their segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GsoKind {
    /// The segments are TCP over IPv4.
    TcpV4,
    /// The segments are TCP over IPv6.
    TcpV6,
    /// The frame is a UDP datagram to be fragmented, over IPv4 or IPv6 (the obsolete `GSO_UDP`).
    UdpFragment,
    /// The segments are UDP datagrams of equal size (`GSO_UDP_L4`).
    Udp,
    /// The frame is an ACK template: several pure ACKs of one connection, the first as a frame, followed by the numbers
    /// of the later ones (`rxo_ack::expand_packed`). Only for sinks that declare support.
    AckTemplate,
}

impl GsoKind {
    /// Returns the protocol number of the segments, and `true` for IPv6 if the kind defines the version;
    /// `None` for ACK templates.
    #[inline]
    #[must_use]
    pub const fn segments(self) -> Option<(u8, Option<bool>)> {
        match self {
            Self::TcpV4 => Some((6, Some(false))),
            Self::TcpV6 => Some((6, Some(true))),
            Self::UdpFragment | Self::Udp => Some((17, None)),
            Self::AckTemplate => None,
        }
    }
}
