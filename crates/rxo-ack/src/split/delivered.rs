//! The report to the splitter about one delivery to the host.

use rxo_frame::Frame;
use rxo_wire::tcp::OptionLayout;
use rxo_wire::{Parsed, SeqNumber, TcpFlags, TcpSegment};

/// Data of one flow that was delivered to the host at once: segments of equal size, except that the last may be
/// shorter. A single segment is also reported by this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The sequence number (SEG.SEQ) of the first segment.
    pub seq: SeqNumber,
    /// The payload length of all segments together, in bytes.
    pub payload_bytes: u32,
    /// The payload length of every segment but the last, in bytes.
    pub segment_bytes: u16,
    /// The TSval of all segments; `None` if the segments have no timestamp at its usual offset.
    pub tsval: Option<u32>,
    /// `true` if the last of the segments carries FIN.
    pub fin: bool,
}

impl Delivered {
    /// Creates the report for a single segment in `frame`, whose headers are `parsed` and `tcp`.
    pub(super) fn of(frame: Frame<&[u8]>, parsed: &Parsed, tcp: &TcpSegment) -> Self {
        let payload_bytes = parsed.payload_bytes();
        // A GSO frame has a segment size; any other frame is one segment.
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
