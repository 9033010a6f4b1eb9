//! Reads TCP headers (RFC 9293).

mod ack;
mod flags;
mod header;
mod options;
mod sack;

pub use ack::AckRecord;
pub use flags::TcpFlags;
pub use header::{CHECKSUM_AT, FLAGS_AT, FixedHeader};
pub use options::{BadOption, OptionKind, OptionLayout, Options, TcpOption, Timestamp};
pub use sack::{SackBlock, SackBlocks};

use crate::SeqNumber;
use crate::parse::Malformed;

/// The length of a TCP header without options, in bytes.
pub const MIN_HEADER_BYTES: usize = 20;

/// The fields of a parsed TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// The sequence number (SEG.SEQ) of the segment.
    pub seq: SeqNumber,
    /// The acknowledgement number (SEG.ACK); meaningless without the ACK flag.
    pub ack: SeqNumber,
    /// The control bits, including the reserved ones.
    pub flags: TcpFlags,
    /// The window (SEG.WND) as in the header, unscaled.
    pub window: u16,
    /// The value of the checksum field, as in the header.
    pub checksum: u16,
    /// The urgent pointer, as in the header.
    pub urgent: u16,
    /// The arrangement of the header's options, classified for coalescing.
    pub options: OptionLayout,
    /// The values of the timestamp option; both are zero if there is none.
    pub timestamp: Timestamp,
}

/// Parses the header at the start of `segment`, which ends where the packet ends. Returns the header and its
/// length in bytes.
#[inline]
pub(crate) fn read(segment: &[u8]) -> Result<(TcpSegment, usize), Malformed> {
    let fixed = FixedHeader::of(segment).ok_or(Malformed::Truncated)?;
    let header = fixed.header_bytes();
    if header < MIN_HEADER_BYTES || header > segment.len() {
        return Err(Malformed::Length);
    }
    let (options, timestamp) = options::classify(&segment[MIN_HEADER_BYTES..header]);
    let read = TcpSegment {
        seq: fixed.seq(),
        ack: fixed.ack(),
        flags: fixed.flags(),
        window: fixed.window(),
        checksum: fixed.checksum(),
        urgent: fixed.urgent(),
        options,
        timestamp,
    };
    Ok((read, header))
}
