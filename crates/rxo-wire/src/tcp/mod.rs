//! TCP (RFC 9293).

mod ack;
mod flags;
mod header;
mod options;

pub use ack::AckRecord;
pub use flags::TcpFlags;
pub use header::{CHECKSUM_AT, FLAGS_AT, FixedHeader};
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
