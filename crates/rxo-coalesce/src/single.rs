//! A frame that is delivered as it arrived, with the offsets of its headers.
//!
//! Most receivers need only the headers of a single frame. So that they need not parse the frame again, the
//! engine keeps the header offsets, in two bytes per frame. All fields are read from the frame at these offsets
//! on request.

use rxo_frame::Frame;
use rxo_wire::tcp::FixedHeader;
use rxo_wire::{FlowKey, Offsets, Parsed, Transport, class_and_length};

use crate::Kind;

/// The offsets of IP header and transport header in a frame, in bytes, and a bit for UDP. For a segment held
/// inside a tunnel these are the inner headers. One number, so that one instruction copies it. The offset of
/// the IP header is below 128; the upper bit of its byte is set for UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Starts(u16);

impl Starts {
    /// The value for a frame without a TCP header, or one that was not parsed.
    pub(crate) const UNKNOWN: Self = Self(0);

    /// Returns the offsets of a parsed frame. The offsets are unknown if the frame is not TCP, or if its TCP
    /// header begins beyond byte 255, after more extension headers than any real packet has.
    #[inline]
    pub(crate) fn of(parsed: &Parsed) -> Self {
        match parsed.transport {
            Transport::Tcp(_) => Self::at(parsed.at),
            _ => Self::UNKNOWN,
        }
    }

    /// Returns the offsets of a TCP segment; unknown if the TCP header begins beyond byte 255.
    #[inline]
    pub(crate) const fn at(Offsets { network, transport, .. }: Offsets) -> Self {
        match transport {
            0..=255 => Self((transport << 8 | network) as u16),
            _ => Self::UNKNOWN,
        }
    }

    /// Returns the offsets for an IP header of `ip_bytes` bytes that begins at `network`. Unknown if `ip_bytes`
    /// is 0.
    #[inline]
    pub(crate) const fn after(network: usize, ip_bytes: usize) -> Self {
        Self(((network + ip_bytes) << 8 | network) as u16)
    }

    /// Returns the offsets of a UDP datagram; unknown if the UDP header begins beyond byte 255.
    #[inline]
    pub(crate) const fn of_datagram(at: Offsets) -> Self {
        match Self::at(at) {
            Self::UNKNOWN => Self::UNKNOWN,
            Self(starts) => Self(starts | DATAGRAM),
        }
    }

    /// Returns `true` if the transport header is UDP.
    #[inline]
    pub(crate) const fn is_datagram(self) -> bool {
        self.0 & DATAGRAM != 0
    }

    /// Returns `true` if the headers are inside a tunnel: the IP header begins behind the longest link
    /// header.
    #[inline]
    pub(crate) const fn is_in_tunnel(self) -> bool {
        self.0 & DATAGRAM == 0 && self.network() > MOST_LINK_BYTES
    }

    /// Returns `true` if the transport header is TCP outside a tunnel, or unknown.
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        // The bit for UDP alone exceeds `MOST_LINK_BYTES`, so one compare excludes both UDP and tunnels.
        self.0 as u8 <= MOST_LINK_BYTES
    }

    /// Returns the offset of the IP header, in bytes.
    #[inline]
    pub(crate) const fn network(self) -> u8 {
        (self.0 & !DATAGRAM) as u8
    }

    /// Returns the offset of the transport header, in bytes; equal to the offset of the IP header if the frame
    /// has no transport header.
    #[inline]
    pub(crate) const fn transport(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

/// The bit in [`Starts`] that marks UDP.
const DATAGRAM: u16 = 0x80;
/// The length of the longest link header: Ethernet with two VLAN tags.
const MOST_LINK_BYTES: u8 = 22;

/// A frame as it arrived. A `Copy` view.
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
    #[inline]
    pub(crate) const fn new(frame: &'a Frame<B>, at: Starts) -> Self {
        Self { frame, at }
    }

    /// Returns the frame, as it arrived.
    #[inline]
    #[must_use]
    pub const fn frame(&self) -> &'a Frame<B> {
        self.frame
    }

    /// Returns the kind of the frame. Reads a few header bytes at known offsets.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind {
        let Some((at, tcp)) = self.offsets().zip(self.tcp()) else { return Kind::Other };
        Kind::of_segment(at.payload_bytes(), tcp.flags())
    }

    /// Returns the offsets of headers and payload, as [`parse`](rxo_wire::parse()) would return them, without
    /// parsing again. `None` if the frame is not TCP, is malformed, or has its TCP header beyond byte 255 or
    /// inside a tunnel.
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

    /// Returns the fixed part of the TCP header; `None` if [`Single::offsets`] is `None`.
    #[inline]
    #[must_use]
    pub fn tcp(&self) -> Option<FixedHeader<'a>> {
        let (network, transport) = (self.at.network(), self.at.transport());
        let segment = self.frame.bytes().get(usize::from(transport)..)?;
        if transport == network || !self.at.is_plain() { None } else { FixedHeader::of(segment) }
    }

    /// Returns the flow key, VLANs included; `None` if [`Single::offsets`] is `None`.
    #[must_use]
    pub fn flow_key(&self) -> Option<FlowKey> {
        let key = FlowKey::read(self.frame.bytes(), self.offsets()?)?;
        Some(self.frame.vlan.map_or(key, |tag| key.on_device_vlan(tag.tci & 0x0fff)))
    }
}
