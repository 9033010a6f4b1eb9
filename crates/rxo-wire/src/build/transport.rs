//! Writes TCP (RFC 9293) and UDP (RFC 768) headers, and the checksums over header and payload.

use super::{BuildError, put_padded, split, split_fixed};
use crate::checksum::{Sum, Summer};
use crate::tcp::{CHECKSUM_AT as TCP_CHECKSUM_AT, MIN_HEADER_BYTES, Timestamp};
use crate::{SeqNumber, TcpFlags, udp};

const MAX_OPTIONS_BYTES: usize = 40;

/// A TCP header. Its checksum field is written as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader<'a> {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The sequence number (SEG.SEQ).
    pub seq: SeqNumber,
    /// The acknowledgement number (SEG.ACK).
    pub ack: SeqNumber,
    /// The TCP flags, including the reserved bits.
    pub flags: TcpFlags,
    /// The window (SEG.WND) as in the header, already scaled.
    pub window: u16,
    /// The urgent pointer of the TCP header.
    pub urgent: u16,
    /// Options as in the header, padded with zeros (end of list) to a multiple of 4 bytes; at most 40 bytes.
    pub options: &'a [u8],
}

impl TcpHeader<'_> {
    /// Returns the length of the header with its options, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        MIN_HEADER_BYTES + self.options.len().next_multiple_of(4)
    }

    /// Writes the header at the start of `out` and returns the rest of `out`.
    ///
    /// # Errors
    /// [`BuildError`] if `out` is too short or there are more than 40 bytes of options.
    pub fn write<'o>(&self, out: &'o mut [u8]) -> Result<&'o mut [u8], BuildError> {
        if self.options.len() > MAX_OPTIONS_BYTES {
            return Err(BuildError::OptionsTooLong { bytes: self.options.len() });
        }
        let (header, rest) = split(out, self.bytes())?;
        let (fixed, options) = split_fixed::<MIN_HEADER_BYTES>(header)?;
        let offset = (self.bytes() / 4) as u16;
        fixed[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        fixed[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        fixed[12..14].copy_from_slice(&(offset << 12 | self.flags.bits()).to_be_bytes());
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        fixed[16..18].fill(0);
        fixed[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        put_padded(options, self.options);
        Ok(rest)
    }
}

/// Returns the timestamp option as nearly every stack sends it: after two no-operation options, so that its
/// values are aligned (RFC 7323, appendix A).
#[must_use]
pub const fn timestamp_option(timestamp: Timestamp) -> [u8; 12] {
    let [a, b, c, d] = timestamp.value.to_be_bytes();
    let [e, f, g, h] = timestamp.echo.to_be_bytes();
    [1, 1, 8, 10, a, b, c, d, e, f, g, h]
}

/// Returns the maximum segment size option, for a SYN.
#[must_use]
pub const fn maximum_segment_size_option(bytes: u16) -> [u8; 4] {
    let [high, low] = bytes.to_be_bytes();
    [2, 4, high, low]
}

/// A UDP header. Its checksum field is written as 0, which means that there is no checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpHeader {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of bytes after the header.
    pub payload_bytes: usize,
}

impl UdpHeader {
    /// Returns the length of the header, in bytes: always 8.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        udp::HEADER_BYTES
    }

    /// Writes the header at the start of `out` and returns the rest of `out`.
    ///
    /// # Errors
    /// [`BuildError`] if `out` is too short or the datagram exceeds its length field.
    pub fn write<'o>(&self, out: &'o mut [u8]) -> Result<&'o mut [u8], BuildError> {
        let bytes = udp::HEADER_BYTES.saturating_add(self.payload_bytes);
        let length = u16::try_from(bytes).map_err(|_| BuildError::PacketTooLong { bytes })?;
        let (fixed, rest) = split_fixed::<{ udp::HEADER_BYTES }>(out)?;
        fixed[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..6].copy_from_slice(&length.to_be_bytes());
        fixed[6..8].fill(0);
        Ok(rest)
    }
}

/// Writes the checksum of `segment`, which is exactly a TCP header and its payload.
///
/// # Errors
/// [`BuildError::NoRoom`] if `segment` ends before its checksum field.
///
/// # Examples
/// ```
/// use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
/// use rxo_wire::checksum::{Summer, verify_transport};
/// use rxo_wire::parse_ip;
///
/// let ip = Ipv4Header { protocol: 6, payload_bytes: 20 + 5, ..Ipv4Header::default() };
/// let mut packet = [0; 45];
/// let segment = ip.write(&mut packet)?;
/// TcpHeader::default().write(segment)?.copy_from_slice(b"hello");
/// write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())?;
///
/// let parsed = parse_ip(&packet).map_err(|_| "unreadable")?;
/// assert!(verify_transport(&parsed, &packet, Summer::detect()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_tcp_checksum(
    segment: &mut [u8],
    pseudo_header: Sum,
    summer: Summer,
) -> Result<(), BuildError> {
    put_checksum(segment, TCP_CHECKSUM_AT, 0)?;
    let checksum = (pseudo_header + summer.sum(segment)).checksum();
    put_checksum(segment, TCP_CHECKSUM_AT, checksum)
}

/// Writes the folded sum of the pseudo-header, from which a device completes the checksum of `segment`.
///
/// # Errors
/// [`BuildError::NoRoom`] if `segment` ends before its checksum field.
pub fn write_tcp_seed(segment: &mut [u8], pseudo_header: Sum) -> Result<(), BuildError> {
    put_checksum(segment, TCP_CHECKSUM_AT, pseudo_header.fold())
}

/// Writes the checksum of `datagram`, which is exactly a UDP header and its payload.
///
/// # Errors
/// [`BuildError::NoRoom`] if `datagram` ends before its checksum field.
pub fn write_udp_checksum(
    datagram: &mut [u8],
    pseudo_header: Sum,
    summer: Summer,
) -> Result<(), BuildError> {
    put_checksum(datagram, udp::CHECKSUM_AT, 0)?;
    let checksum = match (pseudo_header + summer.sum(datagram)).checksum() {
        // In UDP, 0 means no checksum; all ones is the same number in one's complement.
        0 => u16::MAX,
        checksum => checksum,
    };
    put_checksum(datagram, udp::CHECKSUM_AT, checksum)
}

fn put_checksum(segment: &mut [u8], at: usize, checksum: u16) -> Result<(), BuildError> {
    let given = segment.len();
    let field = segment.get_mut(at..at + 2).ok_or(BuildError::NoRoom { needed: at + 2, given })?;
    field.copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}
