//! Writes the IPv6 header and extension headers (RFC 8200).

use core::net::Ipv6Addr;

use super::{BuildError, put_padded, split, split_fixed};
use crate::checksum::Sum;
use crate::ipv6::HEADER_BYTES;

/// The length of the fields next header and length of an extension header, in bytes.
const EXTENSION_FIXED_BYTES: usize = 2;
/// The maximum length of an extension header, in bytes: the length field counts units of 8 bytes after the first.
const EXTENSION_MAX_BYTES: usize = 8 * 256;

/// An IPv6 header, as a value with one field per header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// The IPv6 address of the sender.
    pub source: Ipv6Addr,
    /// The IPv6 address of the receiver.
    pub destination: Ipv6Addr,
    /// The protocol of the payload (6 for TCP, 17 for UDP), or the type of an extension header.
    pub next_header: u8,
    /// The traffic class, including the ECN bits.
    pub traffic_class: u8,
    /// The flow label; only its lower 20 bits are used.
    pub flow_label: u32,
    /// The hop limit: the number of links that the packet may still cross.
    pub hop_limit: u8,
    /// The number of bytes after this header, including extension headers.
    pub payload_bytes: usize,
}

impl Default for Ipv6Header {
    fn default() -> Self {
        Self {
            source: Ipv6Addr::UNSPECIFIED,
            destination: Ipv6Addr::UNSPECIFIED,
            next_header: 0,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            payload_bytes: 0,
        }
    }
}

impl Ipv6Header {
    /// Returns the length of the header, in bytes: always 40.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header at the start of `out` and returns the rest of `out`.
    ///
    /// # Errors
    /// [`BuildError`] if `out` is too short, or the payload exceeds its length field.
    pub fn write<'o>(&self, out: &'o mut [u8]) -> Result<&'o mut [u8], BuildError> {
        let payload_bytes = u16::try_from(self.payload_bytes)
            .map_err(|_| BuildError::PacketTooLong { bytes: self.payload_bytes })?;
        let (fixed, rest) = split_fixed::<HEADER_BYTES>(out)?;
        let label = self.flow_label & 0x000f_ffff;
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | label;
        fixed[..4].copy_from_slice(&first.to_be_bytes());
        fixed[4..6].copy_from_slice(&payload_bytes.to_be_bytes());
        fixed[6] = self.next_header;
        fixed[7] = self.hop_limit;
        fixed[8..24].copy_from_slice(&self.source.octets());
        fixed[24..].copy_from_slice(&self.destination.octets());
        Ok(rest)
    }

    /// Returns the sum of the pseudo-header for a segment of `protocol` that has `bytes` bytes, counted from
    /// the end of the last extension header.
    #[must_use]
    pub fn pseudo_header(&self, protocol: u8, bytes: u32) -> Sum {
        Sum::of(&self.source.octets())
            + Sum::of(&self.destination.octets())
            + Sum::word(u16::from(protocol))
            + Sum::long(bytes)
    }
}

/// An extension header of an IPv6 packet: hop-by-hop (0), routing (43) or destination options (60). The
/// header that precedes it in the packet contains its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Extension<'a> {
    /// The protocol or extension header type of the next header.
    pub next_header: u8,
    /// The contents after the fields next header and length. They are padded with zeros, which are padding
    /// options, to a multiple of 8 bytes.
    pub data: &'a [u8],
}

impl Ipv6Extension<'_> {
    /// Returns the length of the extension header with its padding, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        (EXTENSION_FIXED_BYTES + self.data.len()).next_multiple_of(8)
    }

    /// Writes the extension header at the start of `out` and returns the rest of `out`.
    ///
    /// # Errors
    /// [`BuildError`] if `out` is too short, or the contents exceed the length field.
    pub fn write<'o>(&self, out: &'o mut [u8]) -> Result<&'o mut [u8], BuildError> {
        if self.bytes() > EXTENSION_MAX_BYTES {
            return Err(BuildError::OptionsTooLong { bytes: self.data.len() });
        }
        let (header, rest) = split(out, self.bytes())?;
        let (fixed, data) = split_fixed::<EXTENSION_FIXED_BYTES>(header)?;
        *fixed = [self.next_header, (self.bytes() / 8 - 1) as u8];
        put_padded(data, self.data);
        Ok(rest)
    }
}
