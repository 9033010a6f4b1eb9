//! Writes the IPv4 header (RFC 791).

use core::net::Ipv4Addr;

use super::{BuildError, put_padded, split, split_fixed};
use crate::checksum::{Sum, ipv4_header_checksum};
use crate::ipv4::MIN_HEADER_BYTES;

const MAX_OPTIONS_BYTES: usize = 40;

/// An IPv4 header. [`write`](Self::write) computes total length and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header<'a> {
    /// The address of the sender.
    pub source: Ipv4Addr,
    /// The address of the receiver.
    pub destination: Ipv4Addr,
    /// The protocol of the payload: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Type of service, including the ECN bits.
    pub traffic_class: u8,
    /// Time to live, in hops.
    pub hop_limit: u8,
    /// The identification, which associates the fragments of a packet.
    pub id: u16,
    /// The three flag bits and the fragment offset (in units of 8 bytes), as in the header;
    /// [`Ipv4Header::DONT_FRAGMENT`] for a packet that must not be fragmented.
    pub fragment: u16,
    /// Options, which are padded with zeros to a multiple of 4 bytes; at most 40 bytes.
    pub options: &'a [u8],
    /// The number of bytes after the header.
    pub payload_bytes: usize,
}

impl Default for Ipv4Header<'_> {
    fn default() -> Self {
        Self {
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
            protocol: 0,
            traffic_class: 0,
            hop_limit: 64,
            id: 0,
            fragment: Self::DONT_FRAGMENT,
            options: &[],
            payload_bytes: 0,
        }
    }
}

impl Ipv4Header<'_> {
    /// The DF bit, for [`Ipv4Header::fragment`].
    pub const DONT_FRAGMENT: u16 = 0x4000;

    /// Returns the length of the header with its options, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        MIN_HEADER_BYTES + self.options.len().next_multiple_of(4)
    }

    /// Writes the header at the start of `out` and returns the rest of `out`.
    ///
    /// # Errors
    /// [`BuildError`] if `out` is too short, or options or packet exceed their length fields.
    pub fn write<'o>(&self, out: &'o mut [u8]) -> Result<&'o mut [u8], BuildError> {
        if self.options.len() > MAX_OPTIONS_BYTES {
            return Err(BuildError::OptionsTooLong { bytes: self.options.len() });
        }
        let total = self.bytes().saturating_add(self.payload_bytes);
        let total_field =
            u16::try_from(total).map_err(|_| BuildError::PacketTooLong { bytes: total })?;
        let (header, rest) = split(out, self.bytes())?;
        let (fixed, options) = split_fixed::<MIN_HEADER_BYTES>(header)?;
        fixed[0] = 0x40 | (self.bytes() / 4) as u8;
        fixed[1] = self.traffic_class;
        fixed[2..4].copy_from_slice(&total_field.to_be_bytes());
        fixed[4..6].copy_from_slice(&self.id.to_be_bytes());
        fixed[6..8].copy_from_slice(&self.fragment.to_be_bytes());
        fixed[8] = self.hop_limit;
        fixed[9] = self.protocol;
        fixed[12..16].copy_from_slice(&self.source.octets());
        fixed[16..20].copy_from_slice(&self.destination.octets());
        put_padded(options, self.options);
        let checksum = ipv4_header_checksum(header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        Ok(rest)
    }

    /// Returns the sum of the pseudo-header for this payload.
    #[must_use]
    pub fn pseudo_header(&self) -> Sum {
        Sum::of(&self.source.octets())
            + Sum::of(&self.destination.octets())
            + Sum::word(u16::from(self.protocol))
            + Sum::long(self.payload_bytes as u32)
    }
}
