//! UDP headers (RFC 768).

use crate::parse::Malformed;

const HEADER_BYTES: usize = 8;

/// The parsed header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram {
    /// Length of header and payload according to the header, in bytes.
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
