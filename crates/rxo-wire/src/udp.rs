//! UDP (RFC 768).

use crate::parse::Malformed;

const HEADER_BYTES: usize = 8;

/// A datagram's header, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram {
    /// Length of header and payload as the header says it, in bytes.
    pub length: u16,
    /// The checksum as it stands in the header; 0 when the sender made none.
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
