//! Offsets of the headers of a packet.
//!
//! Separate from [`Parsed`](crate::Parsed) because much code needs only the offsets. The code that parses a
//! packet passes them on, so later code does not parse the headers again.

use core::ops::Range;

use crate::tcp::MIN_HEADER_BYTES;

/// Offsets of the headers and the payload of a packet, in bytes from the first byte of the frame.
///
/// Offsets from [`parse`](crate::parse()) satisfy `network <= transport <= payload <= end`. The fields are
/// public, so other code can create invalid offsets: read bytes with the checked method `get`.
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
    /// The offset of the IP header in the frame, in bytes.
    pub network: u32,
    /// The offset of the transport header in bytes, after IPv4 options and IPv6 extension headers.
    pub transport: u32,
    /// The offset of the payload, in bytes. Equals `transport` if the transport header was not parsed.
    pub payload: u32,
    /// The end of the packet according to its IP header, as an offset in bytes. Bytes at and after this
    /// offset are padding.
    pub end: u32,
}

impl Offsets {
    /// Returns the length of the payload without padding, in bytes.
    #[inline]
    #[must_use]
    pub const fn payload_bytes(self) -> u32 {
        self.end.wrapping_sub(self.payload)
    }

    /// Returns the length of transport header and payload together, in bytes.
    #[inline]
    #[must_use]
    pub const fn segment_bytes(self) -> u32 {
        self.end.wrapping_sub(self.transport)
    }

    /// Returns the range of the IP header, including options and extension headers.
    #[inline]
    #[must_use]
    pub const fn ip_header(self) -> Range<usize> {
        self.network as usize..self.transport as usize
    }

    /// Returns the range of the transport header, including options.
    #[inline]
    #[must_use]
    pub const fn transport_header(self) -> Range<usize> {
        self.transport as usize..self.payload as usize
    }

    /// Returns the range of the options of a TCP header, which begin 20 bytes into it.
    #[inline]
    #[must_use]
    pub const fn tcp_options(self) -> Range<usize> {
        self.transport as usize + MIN_HEADER_BYTES..self.payload as usize
    }

    /// Returns the range of the transport header and the payload.
    #[inline]
    #[must_use]
    pub const fn segment(self) -> Range<usize> {
        self.transport as usize..self.end as usize
    }

    /// Returns the range of the payload, without padding.
    #[inline]
    #[must_use]
    pub const fn payload_range(self) -> Range<usize> {
        self.payload as usize..self.end as usize
    }
}
