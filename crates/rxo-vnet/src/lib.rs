//! `virtio_net_hdr`: ten bytes before each packet that describe which checksum is to be completed and how the
//! packet is to be segmented (virtio 1.2, section 5.1.6). TAP, TUN, packet sockets and virtio guests all use it.
//! For guests the header has twelve bytes: the last two count the buffers that the packet fills.
//!
//! ```text
//!   TUN --read--> [virtio_net_hdr | IP packet, up to 64 KiB] --packets()--> IP packets as on the wire
//!   TUN <-write-- [virtio_net_hdr | merged header | payloads] <--for_packet()-- a delivery of rxo-coalesce
//! ```
//!
//! [`VnetHeader`] converts between these bytes and the metadata types of `rxo-frame`. [`VnetHeader::checked`]
//! validates every header from outside against the packet's own headers. [`packets()`] segments the GSO frames
//! that were read from a TUN. `VnetHeader::gather` (feature `std`) puts header and pieces into an array for
//! `writev`. The crate is separate from `rxo-driver`, so a program that embeds the engine can use it without
//! system calls.
//!
//! # Contract
//! No input or output, no allocation. [`VnetHeader::read`] accepts any bytes and never panics.
//! [`VnetHeader::for_packet`] creates a header from the metadata of one packet; create a new one for each
//! packet.
//!
//! # Examples
//! The header before an aggregate that is written to a TUN:
//! ```
//! use core::num::NonZeroU16;
//!
//! use rxo_frame::{ChecksumStatus, Gso, GsoKind, Offload};
//! use rxo_vnet::VnetHeader;
//!
//! let size = NonZeroU16::new(1_448).ok_or("a size")?;
//! let offload = Offload {
//!     checksum: ChecksumStatus::Partial { start: 20, offset: 16 },
//!     gso: Some(Gso::new(GsoKind::TcpV4, size)),
//!     header_bytes: 52,
//! };
//! let header = VnetHeader::for_packet(offload, 0).to_bytes();
//! assert_eq!(header[..2], [1, 1]);
//! # Ok::<(), &str>(())
//! ```
#![no_std]

#[cfg(feature = "std")]
extern crate std;

mod gate;
#[cfg(feature = "std")]
mod iovecs;
mod packets;

use core::num::NonZeroU16;

pub use gate::{Invalid, admit, segments};
#[cfg(feature = "std")]
pub use iovecs::{IoVecs, TooManyPieces};
pub use packets::{Packets, packets, utun_prefix};
use rxo_frame::{ChecksumStatus, Gso, GsoKind, GsoTunnel, Offload, UdpTunnel};

/// The length of a virtio-net header without a buffer count, in bytes: the default of TAP, TUN and packet
/// sockets.
pub const VNET_HEADER_BYTES: usize = 10;

/// The length of a virtio-net header with a buffer count, in bytes, as in every virtio device since version
/// 1.0.
pub const VIRTIO_HEADER_BYTES: usize = 12;

/// The length of a virtio-net header that can describe tunnels over UDP, in bytes: the buffer count is
/// followed by a hash and two offsets (virtio 1.4, section 5.1.6).
pub const TUNNEL_HEADER_BYTES: usize = 24;

/// The position of the two tunnel offsets in a virtio-net header, in bytes.
const TUNNEL_AT: usize = 20;

/// The position of the buffer count in a virtio-net header of 12 or more bytes, in bytes.
pub const BUFFER_COUNT_AT: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const COALESCED: u8 = 4;
const TUNNEL_CHECKSUM: u8 = 8;

const GSO_NONE: u8 = 0;
const GSO_TCP_V4: u8 = 1;
const GSO_UDP_FRAGMENT: u8 = 3;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;
/// The GSO type of an ACK template: a private kind, used only between rxo's driver and rxo's device.
const GSO_ACK_TEMPLATE: u8 = 0x1e;
const GSO_TUNNEL_V4: u8 = 0x20;
const GSO_TUNNEL_V6: u8 = 0x40;
const GSO_TUNNELS: u8 = GSO_TUNNEL_V4 | GSO_TUNNEL_V6;
const GSO_ECN: u8 = 0x80;

/// A virtio-net header (`virtio_net_hdr`). Its integers are in the byte order of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    flags: u8,
    gso_type: u8,
    header_bytes: u16,
    gso_size: u16,
    checksum_start: u16,
    checksum_offset: u16,
    /// The offset of a tunnel's UDP header in bytes; 0 in a header that cannot describe tunnels.
    outer_transport: u16,
    inner_network: u16,
}

impl VnetHeader {
    /// Reads the first [`VNET_HEADER_BYTES`] of `bytes`; `None` if there are fewer.
    ///
    /// # Examples
    /// ```
    /// use rxo_vnet::VnetHeader;
    ///
    /// let from_tun = [0; 10 + 40];
    /// let header = VnetHeader::read(&from_tun).ok_or("fewer bytes than a header has")?;
    /// assert_eq!(header.to_bytes(), from_tun[..10]);
    /// # Ok::<(), &str>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let b: &[u8; VNET_HEADER_BYTES] = bytes.first_chunk()?;
        let half = |at: usize| u16::from_ne_bytes([b[at], b[at + 1]]);
        Some(Self {
            flags: b[0],
            gso_type: b[1],
            header_bytes: half(2),
            gso_size: half(4),
            checksum_start: half(6),
            checksum_offset: half(8),
            ..Self::default()
        })
    }

    /// Reads the header at the start of `bytes`, whose length `header_bytes` is [`VNET_HEADER_BYTES`],
    /// [`VIRTIO_HEADER_BYTES`] or [`TUNNEL_HEADER_BYTES`]. `None` if there are fewer bytes.
    #[inline]
    #[must_use]
    pub fn read_long(bytes: &[u8], header_bytes: usize) -> Option<Self> {
        let header = Self::read(bytes.get(..header_bytes)?)?;
        if header_bytes < TUNNEL_HEADER_BYTES || header.gso_type & GSO_TUNNELS == 0 {
            return Some(header);
        }
        // Unlike the first ten bytes, the tunnel offsets are little-endian on every machine.
        let half = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let (outer_transport, inner_network) = (half(TUNNEL_AT)?, half(TUNNEL_AT + 2)?);
        Some(Self { outer_transport, inner_network, ..header })
    }

    /// Returns the header as bytes, in the form without a buffer count.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; VNET_HEADER_BYTES] {
        let mut bytes = [0; VNET_HEADER_BYTES];
        bytes[0] = self.flags;
        bytes[1] = self.gso_type;
        bytes[2..4].copy_from_slice(&self.header_bytes.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.gso_size.to_ne_bytes());
        bytes[6..8].copy_from_slice(&self.checksum_start.to_ne_bytes());
        bytes[8..10].copy_from_slice(&self.checksum_offset.to_ne_bytes());
        bytes
    }

    /// Creates the header for a packet with `offload`. `inserted_bytes` is the number of bytes that are
    /// inserted into the packet's link-layer header afterwards (a VLAN tag); the offsets of `offload`
    /// increase by this number.
    ///
    /// # Examples
    /// ```
    /// use rxo_frame::{ChecksumStatus, Offload};
    /// use rxo_vnet::VnetHeader;
    ///
    /// let offload = Offload { checksum: ChecksumStatus::Verified, gso: None, header_bytes: 0 };
    /// let header = VnetHeader::for_packet(offload, 0);
    /// assert_eq!((header.checksum(), header.gso()), (ChecksumStatus::Verified, None));
    /// ```
    #[inline]
    #[must_use]
    pub fn for_packet(offload: Offload, inserted_bytes: u16) -> Self {
        let mut header = Self::default();
        match offload.checksum {
            ChecksumStatus::Unknown => {}
            ChecksumStatus::Verified => header.flags = DATA_VALID,
            ChecksumStatus::Partial { start, offset } => {
                header.flags = NEEDS_CHECKSUM;
                header.checksum_start = start.saturating_add(inserted_bytes);
                header.checksum_offset = offset;
            }
        }
        if let Some(gso) = offload.gso {
            header.gso_type = gso_type(gso);
            header.gso_size = gso.size.get();
            if offload.header_bytes != 0 {
                header.header_bytes = offload.header_bytes.saturating_add(inserted_bytes);
            }
            if let Some(tunnel) = gso.tunnel.and_then(GsoTunnel::as_udp) {
                header.name_tunnel(tunnel, inserted_bytes);
            }
        }
        header
    }

    #[cold]
    fn name_tunnel(&mut self, tunnel: UdpTunnel, inserted_bytes: u16) {
        self.gso_type |= if tunnel.is_outer_v6 { GSO_TUNNEL_V6 } else { GSO_TUNNEL_V4 };
        self.flags |= if tunnel.has_checksum { TUNNEL_CHECKSUM } else { 0 };
        self.outer_transport = u16::from(tunnel.outer_transport) + inserted_bytes;
        self.inner_network = u16::from(tunnel.inner_network) + inserted_bytes;
    }

    /// Returns the header as bytes, in the form that can describe a tunnel, with a buffer count of 1.
    #[must_use]
    pub fn to_tunnel_bytes(self) -> [u8; TUNNEL_HEADER_BYTES] {
        let mut bytes = [0; TUNNEL_HEADER_BYTES];
        bytes[..VIRTIO_HEADER_BYTES].copy_from_slice(&self.to_virtio_bytes(1));
        bytes[TUNNEL_AT..TUNNEL_AT + 2].copy_from_slice(&self.outer_transport.to_le_bytes());
        bytes[TUNNEL_AT + 2..].copy_from_slice(&self.inner_network.to_le_bytes());
        bytes
    }

    /// Returns the header as bytes, in the form with a buffer count: the number of `buffers` that the packet fills; 1
    /// if buffers are not merged (section 5.1.6.4.1). Guests read little-endian numbers, so this machine must be
    /// little-endian.
    #[inline]
    #[must_use]
    pub fn to_virtio_bytes(self, buffers: u16) -> [u8; VIRTIO_HEADER_BYTES] {
        let mut bytes = [0; VIRTIO_HEADER_BYTES];
        bytes[..BUFFER_COUNT_AT].copy_from_slice(&self.to_bytes());
        bytes[BUFFER_COUNT_AT..].copy_from_slice(&buffers.to_le_bytes());
        bytes
    }

    /// Returns this header for a packet that a device merged from several (`VIRTIO_NET_F_RSC_EXT`, section
    /// 5.1.6.4). The counts replace the checksum offsets, so the packet's checksum must be complete; the
    /// header marks it as verified.
    #[inline]
    #[must_use]
    pub const fn with_coalesced(self, counts: Coalesced) -> Self {
        Self {
            flags: self.flags & !NEEDS_CHECKSUM | DATA_VALID | COALESCED,
            checksum_start: counts.segments,
            checksum_offset: counts.duplicate_acks,
            ..self
        }
    }

    /// Returns the counts of a packet that a device merged from several; `None` if the header contains no
    /// such counts. Only a device with `VIRTIO_NET_F_RSC_EXT` may set them.
    #[inline]
    #[must_use]
    pub const fn coalesced(self) -> Option<Coalesced> {
        // With `NEEDS_CHECKSUM` the two fields are checksum offsets, not counts.
        if self.flags & (COALESCED | NEEDS_CHECKSUM) != COALESCED {
            return None;
        }
        let (segments, duplicate_acks) = (self.checksum_start, self.checksum_offset);
        Some(Coalesced { segments, duplicate_acks })
    }

    /// Returns the status of the transport checksum, according to the header.
    #[inline]
    #[must_use]
    pub const fn checksum(self) -> ChecksumStatus {
        if self.flags & NEEDS_CHECKSUM != 0 {
            let (start, offset) = (self.checksum_start, self.checksum_offset);
            ChecksumStatus::Partial { start, offset }
        } else if self.flags & DATA_VALID != 0 {
            ChecksumStatus::Verified
        } else {
            ChecksumStatus::Unknown
        }
    }

    /// Returns `true` if the header marks its packet as a GSO frame of any kind and segment size, even one
    /// for which [`VnetHeader::gso`] returns `None`.
    #[inline]
    #[must_use]
    pub const fn has_gso(self) -> bool {
        self.gso_type & !GSO_ECN != GSO_NONE
    }

    /// Returns the segmentation of a GSO frame; `None` for a frame of one segment. Also `None` for an unknown
    /// kind or a segment size of zero, because no sink could segment such a frame.
    #[inline]
    #[must_use]
    pub fn gso(self) -> Option<Gso> {
        let kind = match self.gso_type & !(GSO_ECN | GSO_TUNNELS) {
            GSO_NONE => return None,
            GSO_TCP_V4 => GsoKind::TcpV4,
            GSO_TCP_V6 => GsoKind::TcpV6,
            GSO_UDP_FRAGMENT => GsoKind::UdpFragment,
            GSO_UDP => GsoKind::Udp,
            GSO_ACK_TEMPLATE => GsoKind::AckTemplate,
            _ => return None,
        };
        let size = NonZeroU16::new(self.gso_size)?;
        Some(Gso {
            ecn: self.gso_type & GSO_ECN != 0,
            tunnel: self.tunnel(),
            ..Gso::new(kind, size)
        })
    }

    /// Returns the tunnel around a GSO frame; `None` if there is none. If the header has no valid offsets for
    /// the tunnel, the result is [`GsoTunnel::OTHER`].
    #[inline]
    fn tunnel(self) -> Option<GsoTunnel> {
        if self.gso_type & GSO_TUNNELS == 0 {
            return None;
        }
        let (outer, inner) = (self.outer_transport.try_into(), self.inner_network.try_into());
        let (Ok(outer_transport), Ok(inner_network)) = (outer, inner) else {
            return Some(GsoTunnel::OTHER);
        };
        Some(GsoTunnel::udp(UdpTunnel {
            outer_transport,
            inner_network,
            is_outer_v6: self.gso_type & GSO_TUNNELS == GSO_TUNNEL_V6,
            has_checksum: self.flags & TUNNEL_CHECKSUM != 0,
        }))
    }
}

/// The counts of a packet that a device merged from several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalesced {
    /// The number of segments that were merged into the packet.
    pub segments: u16,
    /// The number of duplicate ACKs among the merged segments.
    pub duplicate_acks: u16,
}

const fn gso_type(gso: Gso) -> u8 {
    let kind = match gso.kind {
        GsoKind::TcpV4 => GSO_TCP_V4,
        GsoKind::TcpV6 => GSO_TCP_V6,
        GsoKind::UdpFragment => GSO_UDP_FRAGMENT,
        GsoKind::Udp => GSO_UDP,
        GsoKind::AckTemplate => GSO_ACK_TEMPLATE,
    };
    if gso.ecn { kind | GSO_ECN } else { kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTIAL: ChecksumStatus = ChecksumStatus::Partial { start: 34, offset: 16 };

    fn gso(kind: GsoKind, ecn: bool) -> Gso {
        Gso { ecn, ..Gso::new(kind, NonZeroU16::new(1448).unwrap()) }
    }

    #[test]
    fn every_offload_survives_the_way_through_the_header() {
        let kinds = [
            GsoKind::TcpV4,
            GsoKind::TcpV6,
            GsoKind::UdpFragment,
            GsoKind::Udp,
            GsoKind::AckTemplate,
        ];
        let gsos = kinds.iter().flat_map(|&k| [Some(gso(k, false)), Some(gso(k, true))]);
        for gso in gsos.chain([None]) {
            for checksum in [ChecksumStatus::Unknown, ChecksumStatus::Verified, PARTIAL] {
                let offload = Offload { checksum, gso, header_bytes: 66 };
                let bytes = VnetHeader::for_packet(offload, 0).to_bytes();
                let read = VnetHeader::read(&bytes).unwrap();
                assert_eq!((read.checksum(), read.gso()), (checksum, gso));
            }
        }
    }

    #[test]
    fn a_tunnel_is_named_in_the_long_header_and_not_in_a_short_one() {
        let named = UdpTunnel {
            outer_transport: 34,
            inner_network: 64,
            is_outer_v6: false,
            has_checksum: true,
        };
        for is_outer_v6 in [false, true] {
            let tunnel = Some(GsoTunnel::udp(UdpTunnel { is_outer_v6, ..named }));
            let gso = Some(Gso { tunnel, ..gso(GsoKind::TcpV4, false) });
            let offload = Offload { checksum: PARTIAL, gso, header_bytes: 0 };
            let bytes = VnetHeader::for_packet(offload, 0).to_tunnel_bytes();
            assert_eq!(bytes[..2], [1 | 8, if is_outer_v6 { 0x41 } else { 0x21 }]);
            assert_eq!(bytes[20..], [34, 0, 64, 0]);
            assert_eq!(VnetHeader::read_long(&bytes, 24).unwrap().gso(), gso);
            let short = VnetHeader::read_long(&bytes, 12).unwrap().gso().unwrap();
            assert_eq!(short.tunnel, Some(GsoTunnel::OTHER));
            let tagged = VnetHeader::for_packet(offload, 4).to_tunnel_bytes();
            assert_eq!(tagged[20..], [38, 0, 68, 0]);
        }
        assert_eq!(VnetHeader::read_long(&[0; 23], 24), None);
    }

    #[test]
    fn an_inserted_tag_moves_the_checksum_and_the_header_end() {
        let gso = Some(gso(GsoKind::TcpV4, false));
        let offload = Offload { checksum: PARTIAL, gso, header_bytes: 66 };
        let header = VnetHeader::for_packet(offload, 4);
        assert_eq!((header.checksum_start, header.header_bytes), (38, 70));
    }

    #[test]
    fn the_bytes_stand_where_the_kernel_reads_them() {
        let gso = Some(gso(GsoKind::TcpV6, true));
        let offload = Offload { checksum: PARTIAL, gso, header_bytes: 66 };
        let halves = [66_u16, 1448, 34, 16].map(u16::to_ne_bytes).concat();
        let bytes = VnetHeader::for_packet(offload, 0).to_bytes();
        assert_eq!(bytes[..2], [1, 0x84]);
        assert_eq!(bytes[2..], halves);
    }

    #[test]
    fn nothing_said_is_ten_zeros() {
        assert_eq!(VnetHeader::for_packet(Offload::default(), 0).to_bytes(), [0; 10]);
    }

    #[test]
    fn the_longer_header_ends_with_the_number_of_buffers() {
        let header = VnetHeader::for_packet(Offload { checksum: PARTIAL, ..Offload::default() }, 0);
        let bytes = header.to_virtio_bytes(0x0102);
        assert_eq!(bytes[..VNET_HEADER_BYTES], header.to_bytes());
        assert_eq!(bytes[BUFFER_COUNT_AT..], [2, 1]);
    }

    #[test]
    fn counts_take_the_place_of_the_checksums_offsets() {
        let offload =
            Offload { checksum: PARTIAL, gso: Some(gso(GsoKind::TcpV4, false)), header_bytes: 66 };
        let header = VnetHeader::for_packet(offload, 0);
        assert_eq!(header.coalesced(), None);
        let counts = Coalesced { segments: 44, duplicate_acks: 2 };
        let bytes = header.with_coalesced(counts).to_bytes();
        let read = VnetHeader::read(&bytes).unwrap();
        assert_eq!((bytes[0], read.coalesced()), (6, Some(counts)));
        assert_eq!((read.checksum(), read.gso()), (ChecksumStatus::Verified, header.gso()));
    }

    #[test]
    fn offsets_of_a_checksum_are_not_counts() {
        let mut bytes = [5, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[6..].copy_from_slice(&[34_u16, 16].map(u16::to_ne_bytes).concat());
        let read = VnetHeader::read(&bytes).unwrap();
        assert_eq!((read.coalesced(), read.checksum()), (None, PARTIAL));
    }

    #[test]
    fn any_bytes_can_be_read() {
        assert_eq!(VnetHeader::read(&[0xff; 9]), None);
        assert_eq!(VnetHeader::read(&[0xff; 10]).unwrap().gso(), None);
        let no_size = [0, GSO_TCP_V4, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(VnetHeader::read(&no_size).unwrap().gso(), None);
    }
}
