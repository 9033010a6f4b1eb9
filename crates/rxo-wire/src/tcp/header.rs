//! The fixed part of a TCP header.

use super::{MIN_HEADER_BYTES, TcpFlags};
use crate::SeqNumber;

/// A view of the first 20 bytes of a TCP header (RFC 9293, section 3.1). Fields are read on request; no value
/// is checked, and no access can fail.
///
/// # Examples
/// ```
/// use rxo_wire::tcp::FixedHeader;
/// use rxo_wire::{SeqNumber, TcpFlags};
///
/// let segment = [0, 80, 4, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x10, 1, 0, 0, 0, 0, 0, b'h', b'i'];
/// let header = FixedHeader::of(&segment).unwrap();
/// assert_eq!((header.seq(), header.ack()), (SeqNumber(7), SeqNumber(9)));
/// assert_eq!((header.flags(), header.header_bytes()), (TcpFlags::ACK, 20));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FixedHeader<'a>(&'a [u8; MIN_HEADER_BYTES]);

impl<'a> FixedHeader<'a> {
    /// Returns the header at the start of `segment`. `None` if `segment` has fewer than 20 bytes.
    #[inline]
    #[must_use]
    pub fn of(segment: &'a [u8]) -> Option<Self> {
        segment.first_chunk().map(Self)
    }

    /// The sequence number (SEG.SEQ).
    #[inline]
    #[must_use]
    pub const fn seq(self) -> SeqNumber {
        SeqNumber(u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]]))
    }

    /// The acknowledgement number (SEG.ACK); meaningless without the ACK flag.
    #[inline]
    #[must_use]
    pub const fn ack(self) -> SeqNumber {
        SeqNumber(u32::from_be_bytes([self.0[8], self.0[9], self.0[10], self.0[11]]))
    }

    /// The header length from the data offset, options included, in bytes: 0 to 60. A value below 20 is
    /// invalid.
    #[inline]
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        (self.0[12] >> 4) as usize * 4
    }

    /// The control bits, including the reserved ones.
    #[inline]
    #[must_use]
    pub const fn flags(self) -> TcpFlags {
        TcpFlags::from_bits(u16::from_be_bytes([self.0[12], self.0[13]]))
    }

    /// The window (SEG.WND) as in the header, unscaled.
    #[inline]
    #[must_use]
    pub const fn window(self) -> u16 {
        u16::from_be_bytes([self.0[14], self.0[15]])
    }

    /// The value of the checksum field.
    #[inline]
    #[must_use]
    pub const fn checksum(self) -> u16 {
        u16::from_be_bytes([self.0[CHECKSUM_AT], self.0[CHECKSUM_AT + 1]])
    }

    /// The urgent pointer of the TCP header.
    #[inline]
    #[must_use]
    pub const fn urgent(self) -> u16 {
        u16::from_be_bytes([self.0[18], self.0[19]])
    }
}

/// The offset in a TCP header of the byte with the low eight control bits, CWR to FIN.
pub const FLAGS_AT: usize = 13;
/// The offset of the checksum in a TCP header, in bytes.
pub const CHECKSUM_AT: usize = 16;
