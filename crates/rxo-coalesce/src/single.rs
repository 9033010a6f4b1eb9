//! A frame that is delivered as it came, and what the engine read of it.
//!
//! Separate from the delivery because it is all that most receivers ask for: where the headers of a single
//! frame are, without reading them again. The engine keeps two bytes of each frame; everything else is read
//! from the frame at these places, when it is asked for.

use rxo_frame::Frame;
use rxo_wire::tcp::FixedHeader;
use rxo_wire::{FlowKey, Offsets, Parsed, TcpFlags, Transport, class_and_length};

/// Marks of ECN (RFC 3168, RFC 9768), which a pure ACK may have.
const MARKS: TcpFlags = TcpFlags::ECE.union(TcpFlags::CWR).union(TcpFlags::AE);

/// What a delivery carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP with payload; also coalesced inside a tunnel. A single one in a tunnel is [`Kind::Other`].
    Data,
    /// UDP datagrams, coalesced. A single one is [`Kind::Other`].
    Datagrams,
    /// TCP without payload and with no flag but ACK, marks of ECN aside.
    PureAck,
    /// Anything else: SYN, FIN and RST without payload, fragments, other protocols, frames that cannot be
    /// read.
    Other,
}

/// Where the IP header and the transport header begin, in bytes from the frame's first, and whether that is UDP.
/// One number, so that it is copied by one instruction. The IP header begins at a byte below 128: the upper bit
/// of its place says UDP. Of a segment that is held inside a tunnel these are the inner headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Starts(u16);

impl Starts {
    /// Of a frame without a TCP header, or with one that was not read.
    pub(crate) const UNKNOWN: Self = Self(0);

    /// The starts of a frame whose headers were read. Unknown if it is not TCP, and for a TCP header beyond
    /// byte 255, behind more extension headers than any real packet has.
    #[inline]
    pub(crate) fn of(parsed: &Parsed) -> Self {
        match parsed.transport {
            Transport::Tcp(_) => Self::at(parsed.at),
            _ => Self::UNKNOWN,
        }
    }

    /// The starts of a TCP segment with these offsets; unknown as in [`Starts::of`].
    #[inline]
    pub(crate) const fn at(Offsets { network, transport, .. }: Offsets) -> Self {
        match transport {
            0..=255 => Self((transport << 8 | network) as u16),
            _ => Self::UNKNOWN,
        }
    }

    /// The starts of a frame whose IP header has `ip_bytes` and begins at `network`. Unknown if `ip_bytes`
    /// is 0.
    #[inline(always)]
    pub(crate) const fn after(network: usize, ip_bytes: usize) -> Self {
        Self(((network + ip_bytes) << 8 | network) as u16)
    }

    /// The starts of a UDP datagram with these offsets; unknown as in [`Starts::of`].
    #[inline]
    pub(crate) const fn of_datagram(at: Offsets) -> Self {
        match Self::at(at) {
            Self::UNKNOWN => Self::UNKNOWN,
            Self(starts) => Self(starts | DATAGRAM),
        }
    }

    /// Whether the transport header is that of UDP.
    #[inline(always)]
    pub(crate) const fn is_datagram(self) -> bool {
        self.0 & DATAGRAM != 0
    }

    /// Whether these are headers inside a tunnel: the IP header begins further on than behind any link header.
    #[inline(always)]
    pub(crate) const fn is_in_tunnel(self) -> bool {
        self.0 & DATAGRAM == 0 && self.network() > MOST_LINK_BYTES
    }

    /// Whether the transport header is that of a TCP segment in no tunnel, if it is known.
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        // That bit is more than the bytes of any link header.
        self.0 as u8 <= MOST_LINK_BYTES
    }

    /// The first byte of the IP header.
    #[inline(always)]
    pub(crate) const fn network(self) -> u8 {
        (self.0 & !DATAGRAM) as u8
    }

    /// The first byte of the transport header; that of the IP header if there is none.
    #[inline(always)]
    pub(crate) const fn transport(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

/// In [`Starts`], set for UDP.
const DATAGRAM: u16 = 0x80;
/// Ethernet with two VLAN tags.
const MOST_LINK_BYTES: u8 = 22;

/// A frame as it came. A cheap view.
#[derive(Debug)]
pub struct Single<'a, B> {
    frame: &'a Frame<B>,
    at: Starts,
}

impl<B> Clone for Single<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Single<'_, B> {}

impl<'a, B: AsRef<[u8]>> Single<'a, B> {
    #[inline(always)]
    pub(crate) const fn new(frame: &'a Frame<B>, at: Starts) -> Self {
        Self { frame, at }
    }

    /// The frame.
    #[inline]
    #[must_use]
    pub const fn frame(&self) -> &'a Frame<B> {
        self.frame
    }

    /// What the frame carries. Reads a few bytes at known places.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind {
        let Some((at, tcp)) = self.offsets().zip(self.tcp()) else { return Kind::Other };
        if at.payload_bytes() > 0 {
            Kind::Data
        } else if tcp.flags().without(MARKS) == TcpFlags::ACK {
            Kind::PureAck
        } else {
            Kind::Other
        }
    }

    /// Where headers and payload are, as [`parse`](rxo_wire::parse()) says it: the engine has read them, so
    /// nobody has to again. Its lengths are right. `None` if the frame is not TCP, cannot be read, or has its
    /// TCP header beyond byte 255 or inside a tunnel.
    #[inline]
    #[must_use]
    pub fn offsets(&self) -> Option<Offsets> {
        let tcp = self.tcp()?;
        let (network, transport) = (self.at.network(), self.at.transport());
        let packet = self.frame.bytes().get(usize::from(network)..)?;
        let (_, packet_bytes) = class_and_length(packet)?;
        Some(Offsets {
            network: network.into(),
            transport: transport.into(),
            payload: u32::from(transport) + tcp.header_bytes() as u32,
            end: u32::from(network) + packet_bytes as u32,
        })
    }

    /// The fixed part of the TCP header; `None` where [`Single::offsets`] is.
    #[inline]
    #[must_use]
    pub fn tcp(&self) -> Option<FixedHeader<'a>> {
        let (network, transport) = (self.at.network(), self.at.transport());
        let segment = self.frame.bytes().get(usize::from(transport)..)?;
        if transport == network || !self.at.is_plain() { None } else { FixedHeader::of(segment) }
    }

    /// The flow, VLANs included; `None` where [`Single::offsets`] is.
    #[must_use]
    pub fn flow_key(&self) -> Option<FlowKey> {
        let key = FlowKey::read(self.frame.bytes(), self.offsets()?)?;
        Some(self.frame.vlan.map_or(key, |tag| key.on_device_vlan(tag.tci & 0x0fff)))
    }
}
