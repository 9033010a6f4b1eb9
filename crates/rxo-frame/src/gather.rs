//! The interface through which packets in several pieces reach a sink.
//!
//! It is defined below both the receive engine and the devices, so that neither needs to know the
//! other: the engine's deliveries and plain frames implement [`Gather`], and sinks accept `Gather`.

use core::num::NonZeroU16;

use crate::{ChecksumStatus, Frame, VlanTag};

/// One packet for a sink, in pieces with lifetime `'a`.
///
/// A value of this trait is a cheap view. The pieces stay in place until `'a` ends, so a sink may
/// pass them to the system and wait.
pub trait Gather<'a>: Copy {
    /// The checksum and segmentation work that the sink must pass on, or do itself.
    fn offload(self) -> Offload;

    /// The outer VLAN tag, if it is not in the bytes.
    fn vlan(self) -> Option<VlanTag>;

    /// Length of all pieces together, in bytes.
    fn byte_len(self) -> usize;

    /// Calls `visit` for each piece, in order. The first holds at least the headers.
    fn for_each_slice(self, visit: impl FnMut(&'a [u8]));

    /// Number of frames that this packet was made of, or of segments in a large send.
    fn frame_count(self) -> usize;

    /// Calls `visit` for each of those frames, in order. Sinks use it if the system refuses the
    /// whole packet. A packet of one frame is that frame itself; if it is in several pieces, nothing is visited.
    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>));
}

/// What a sink writes into a `virtio_net_hdr`, or must do in software if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The form of the checksum in the bytes.
    pub checksum: ChecksumStatus,
    /// Set if the bytes are a GSO frame.
    pub gso: Option<Gso>,
    /// Length of link, network and transport headers, in bytes; 0 if unknown.
    pub header_bytes: u16,
}

/// How a GSO frame is segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gso {
    /// The protocol of the segments.
    pub kind: GsoKind,
    /// Whether CWR is set on the first segment only (`GSO_ECN`).
    pub ecn: bool,
    /// Payload bytes of every segment but the last.
    pub size: NonZeroU16,
    /// The tunnel, if `kind` describes the headers of a packet inside one; `None` if it describes the frame's own headers.
    pub tunnel: Option<GsoTunnel>,
}

impl Gso {
    /// Segments of `kind` with `size` bytes of payload, CWR on all of them or none, in no tunnel.
    #[inline]
    #[must_use]
    pub const fn new(kind: GsoKind, size: NonZeroU16) -> Self {
        Self { kind, ecn: false, size, tunnel: None }
    }
}

/// Where the headers around those of a GSO frame are. Two bytes, because every frame has room for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct GsoTunnel(NonZeroU16);

/// What a virtio header says of a tunnel over UDP (virtio 1.4, section 5.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpTunnel {
    /// Where the outer UDP header begins, in bytes from the start of the frame, at most 127.
    pub outer_transport: u8,
    /// Where the inner IP header begins, in bytes from the start of the frame, at most 126.
    pub inner_network: u8,
    /// Whether the outer IP header is of IPv6.
    pub is_outer_v6: bool,
    /// Whether the outer UDP header has a checksum.
    pub has_checksum: bool,
}

impl GsoTunnel {
    /// One that no virtio header can name: GRE, IP in IP, or UDP with longer headers.
    pub const OTHER: Self = Self(NonZeroU16::MAX);

    const V6: u16 = 1 << 14;
    const CHECKSUM: u16 = 1 << 15;

    /// A tunnel over UDP; [`GsoTunnel::OTHER`] if an offset is larger than that.
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

    /// The tunnel over UDP; `None` for [`GsoTunnel::OTHER`].
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

/// The protocols that can be segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GsoKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams of equal size, to be fragmented (the old `GSO_UDP`).
    UdpFragment,
    /// UDP datagrams of equal size (`GSO_UDP_L4`).
    Udp,
    /// No segments, but pure ACKs of one connection: the first as a frame, with the numbers of the later
    /// ones behind it (`rxo_ack::expand_packed`). Only for sinks that say so.
    AckTemplate,
}

impl GsoKind {
    /// The protocol number of the segments, and whether they are of IPv6 if the kind says it; `None` for ACK templates.
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
