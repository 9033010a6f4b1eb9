//! Reads UDP headers (RFC 768).

use crate::parse::Malformed;

/// The length of a UDP header, in bytes.
pub const HEADER_BYTES: usize = 8;
/// The offset of the length field in a UDP header, in bytes.
pub const LENGTH_AT: usize = 4;
/// The offset of the checksum field in a UDP header, in bytes.
pub const CHECKSUM_AT: usize = 6;

/// Returns `checksum`, or 0xffff if it is 0: both are zero in one's complement, but 0 in the header means
/// that there is no checksum.
#[must_use]
pub const fn never_zero(checksum: u16) -> u16 {
    if checksum == 0 { u16::MAX } else { checksum }
}

/// The parsed header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram {
    /// The length field of the header: the length of header and payload, in bytes.
    pub length: u16,
    /// The value of the checksum field; 0 if the sender computed no checksum.
    pub checksum: u16,
}

#[inline]
pub(crate) fn read(datagram: &[u8]) -> Result<(UdpDatagram, usize), Malformed> {
    let header: &[u8; HEADER_BYTES] = datagram.first_chunk().ok_or(Malformed::Truncated)?;
    let length = u16::from_be_bytes([header[4], header[5]]);
    if usize::from(length) < HEADER_BYTES || usize::from(length) > datagram.len() {
        return Err(Malformed::Length);
    }
    let checksum = u16::from_be_bytes([header[6], header[7]]);
    Ok((UdpDatagram { length, checksum }, HEADER_BYTES))
}
