//! What a pure ACK says.

use super::TcpFlags;
use crate::SeqNumber;

/// One pure ACK in 32 bytes: all that a sender learns from it. What a receive engine keeps of each
/// ACK that it aggregates, and what an endpoint takes in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AckRecord {
    /// When its frame arrived, in nanoseconds of the receiving host's clock.
    pub arrived_at_ns: u64,
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK.
    pub ack: SeqNumber,
    /// TSval; 0 when there is no timestamp.
    pub ts_value: u32,
    /// TSecr; 0 when there is no timestamp.
    pub ts_echo: u32,
    /// SEG.WND, unscaled.
    pub window: u16,
    /// Control bits: ACK, and the marks of ECN.
    pub flags: TcpFlags,
    /// The ECN field of its IP header, 0 to 3 (RFC 3168 section 5).
    pub ecn: u8,
    /// Whether there is a timestamp.
    pub has_timestamp: bool,
}

impl AckRecord {
    /// Reads a segment without payload, from the first byte of its TCP header to the end of its
    /// packet; `traffic_class` is its IP header's. `None` when the header is cut short.
    #[inline]
    #[must_use]
    pub fn read(segment: &[u8], traffic_class: u8, arrived_at_ns: u64) -> Option<Self> {
        let (tcp, _) = super::read(segment).ok()?;
        Some(Self {
            arrived_at_ns,
            seq: tcp.seq,
            ack: tcp.ack,
            ts_value: tcp.timestamp.value,
            ts_echo: tcp.timestamp.echo,
            window: tcp.window,
            flags: tcp.flags,
            ecn: traffic_class & 3,
            has_timestamp: tcp.options.has_timestamp(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_header_gives_no_record() {
        assert_eq!(AckRecord::read(&[0; 19], 0, 0), None);
    }

    #[test]
    fn a_record_takes_half_a_cache_line() {
        assert_eq!(size_of::<AckRecord>(), 32);
    }
}
