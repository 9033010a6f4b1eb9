//! Segment records: the fields of each segment that an aggregate preserves.

use rxo_frame::Instant;
use rxo_wire::SeqNumber;
use rxo_wire::tcp::Timestamp;

/// The fields of one segment of an aggregate that may differ from the merged header. The record is read from
/// the original frame on request, so it needs no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRecord {
    /// The sequence number (SEG.SEQ) of the segment.
    pub seq: SeqNumber,
    /// The acknowledgement number (SEG.ACK) of the segment.
    pub ack: SeqNumber,
    /// The window (SEG.WND) as in the header, unscaled.
    pub window: u16,
    /// The timestamp option; `None` if there is none at its usual offset.
    pub timestamp: Option<Timestamp>,
    /// The length of the segment's payload, in bytes.
    pub payload_bytes: u32,
    /// The arrival time of the segment's frame.
    pub arrived_at: Instant,
}

/// The first four bytes of options with an aligned timestamp: two no-operation options, then kind and length of the
/// timestamp option.
const ALIGNED_TIMESTAMP: u32 = 0x0101_080a;

impl SegmentRecord {
    /// Returns the record of a segment with the TCP header `header`.
    pub(crate) fn read(header: &[u8], payload_bytes: u32, arrived_at: Instant) -> Self {
        let word = |at: usize| {
            let bytes = header.get(at..).and_then(|rest| rest.first_chunk::<4>());
            bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
        };
        Self {
            seq: SeqNumber(word(4)),
            ack: SeqNumber(word(8)),
            window: word(14).wrapping_shr(16) as u16,
            timestamp: (word(20) == ALIGNED_TIMESTAMP)
                .then(|| Timestamp { value: word(24), echo: word(28) }),
            payload_bytes,
            arrived_at,
        }
    }
}
