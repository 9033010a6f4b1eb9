//! Where the headers of a packet begin.
//!
//! Separate from [`Parsed`](crate::Parsed) because many need nothing else: whoever has read a packet's
//! headers hands their offsets on, and nobody after it walks the headers again.

use core::ops::Range;

use crate::tcp::MIN_HEADER_BYTES;

/// Where the headers and the payload of a packet are, in bytes from the first byte of the frame.
///
/// `network <= transport <= payload <= end` holds for offsets that [`parse`](crate::parse()) gives. The
/// fields are public, so offsets from elsewhere may be any numbers: read bytes with `get`.
///
/// # Examples
/// ```
/// use rxo_wire::Offsets;
///
/// let at = Offsets { network: 14, transport: 34, payload: 66, end: 1_514 };
/// assert_eq!(at.payload_bytes(), 1_448);
/// assert_eq!(at.transport_header(), 34..66);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// The first byte of the IP header.
    pub network: u32,
    /// The first byte of the transport header, behind IPv4 options and IPv6 extension headers.
    pub transport: u32,
    /// The first byte of the payload. Equal to `transport` if the transport header was not read.
    pub payload: u32,
    /// The end of the packet by its own length. Bytes from here on are padding.
    pub end: u32,
}

impl Offsets {
    /// The length of the payload without padding, in bytes.
    #[inline]
    #[must_use]
    pub const fn payload_bytes(self) -> u32 {
        self.end.wrapping_sub(self.payload)
    }

    /// The length of transport header and payload together, in bytes.
    #[inline]
    #[must_use]
    pub const fn segment_bytes(self) -> u32 {
        self.end.wrapping_sub(self.transport)
    }

    /// The IP header, with options and extension headers.
    #[inline]
    #[must_use]
    pub const fn ip_header(self) -> Range<usize> {
        self.network as usize..self.transport as usize
    }

    /// The transport header, with options.
    #[inline]
    #[must_use]
    pub const fn transport_header(self) -> Range<usize> {
        self.transport as usize..self.payload as usize
    }

    /// The options of a TCP header, which begin 20 bytes into it.
    #[inline]
    #[must_use]
    pub const fn tcp_options(self) -> Range<usize> {
        self.transport as usize + MIN_HEADER_BYTES..self.payload as usize
    }

    /// The transport header and the payload.
    #[inline]
    #[must_use]
    pub const fn segment(self) -> Range<usize> {
        self.transport as usize..self.end as usize
    }

    /// The payload, without padding.
    #[inline]
    #[must_use]
    pub const fn payload_range(self) -> Range<usize> {
        self.payload as usize..self.end as usize
    }
}
