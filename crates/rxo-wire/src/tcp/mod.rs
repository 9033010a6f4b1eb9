//! TCP (RFC 9293).

mod ack;
mod flags;
mod options;

pub use ack::AckRecord;
pub use flags::TcpFlags;
pub use options::{BadOption, OptionKind, OptionLayout, Options, TcpOption, Timestamp};

use crate::SeqNumber;
use crate::parse::Malformed;

/// The header without options, in bytes.
pub const MIN_HEADER_BYTES: usize = 20;

/// A segment's header, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK; means nothing without the ACK flag.
    pub ack: SeqNumber,
    /// Control bits, the reserved ones included.
    pub flags: TcpFlags,
    /// SEG.WND as it stands in the header, unscaled.
    pub window: u16,
    /// The checksum as it stands in the header.
    pub checksum: u16,
    /// The urgent pointer.
    pub urgent: u16,
    /// Which options there are.
    pub options: OptionLayout,
    /// The timestamp option's values; zero when there is none.
    pub timestamp: Timestamp,
}

/// Reads the header at the start of `segment`, whose end is the packet's end. Returns it and its
/// length in bytes.
#[inline]
pub(crate) fn read(segment: &[u8]) -> Result<(TcpSegment, usize), Malformed> {
    let fixed: &[u8; MIN_HEADER_BYTES] = segment.first_chunk().ok_or(Malformed::Truncated)?;
    let header = usize::from(fixed[12] >> 4) * 4;
    if header < MIN_HEADER_BYTES || header > segment.len() {
        return Err(Malformed::Length);
    }
    let (options, timestamp) = options::classify(&segment[MIN_HEADER_BYTES..header]);
    let read = TcpSegment {
        seq: SeqNumber(u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]])),
        ack: SeqNumber(u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]])),
        flags: TcpFlags::from_bits(u16::from_be_bytes([fixed[12], fixed[13]])),
        window: u16::from_be_bytes([fixed[14], fixed[15]]),
        checksum: u16::from_be_bytes([fixed[16], fixed[17]]),
        urgent: u16::from_be_bytes([fixed[18], fixed[19]]),
        options,
        timestamp,
    };
    Ok((read, header))
}
