//! What the receive side says of one delivery.

use rxo_frame::Frame;
use rxo_wire::tcp::OptionLayout;
use rxo_wire::{Parsed, SeqNumber, TcpFlags, TcpSegment};

/// Data of one flow that was handed to the host at once: segments of one size, the last of which may
/// be shorter. A single segment is one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// SEG.SEQ of the first.
    pub seq: SeqNumber,
    /// All payloads together, in bytes.
    pub payload_bytes: u32,
    /// Payload of every segment but the last, in bytes.
    pub segment_bytes: u16,
    /// TSval, which all have in common; `None` without a timestamp in its usual place.
    pub tsval: Option<u32>,
    /// Whether the last carries FIN.
    pub fin: bool,
}

impl Delivered {
    /// What the frame says of which these are the headers.
    pub(super) fn of(frame: Frame<&[u8]>, parsed: &Parsed, tcp: &TcpSegment) -> Self {
        let payload_bytes = parsed.payload_bytes();
        // A frame that came as several segments says itself how large they are.
        let one = payload_bytes.min(u32::from(u16::MAX)) as u16;
        let has_timestamp = tcp.options == OptionLayout::AlignedTimestamp;
        Self {
            seq: tcp.seq,
            payload_bytes,
            segment_bytes: frame.gso.map_or(one, |gso| gso.size.get()),
            tsval: has_timestamp.then_some(tcp.timestamp.value),
            fin: tcp.flags.contains(TcpFlags::FIN),
        }
    }
}
