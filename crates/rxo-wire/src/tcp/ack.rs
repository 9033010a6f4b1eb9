//! What a pure ACK says.

use super::{FixedHeader, MIN_HEADER_BYTES, TcpFlags, Timestamp};
use crate::SeqNumber;

/// One pure ACK in 32 bytes: all that a sender learns from it. A receive engine keeps a record of each ACK
/// that it aggregates, and an endpoint takes the record in place of the ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AckRecord {
    /// When its frame arrived, in nanoseconds of the receiving host's clock.
    pub arrived_at_ns: u64,
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK.
    pub ack: SeqNumber,
    /// TSval; 0 if there is no timestamp.
    pub ts_value: u32,
    /// TSecr; 0 if there is no timestamp.
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
    /// packet. `traffic_class` is that of its IP header. `None` if the header is cut short.
    #[inline(always)]
    #[must_use]
    pub fn read(segment: &[u8], traffic_class: u8, arrived_at_ns: u64) -> Option<Self> {
        let tcp = FixedHeader::of(segment)?;
        let timestamp = Timestamp::find(segment.get(MIN_HEADER_BYTES..tcp.header_bytes())?);
        let Timestamp { value, echo } = timestamp.unwrap_or_default();
        Some(Self {
            arrived_at_ns,
            seq: tcp.seq(),
            ack: tcp.ack(),
            ts_value: value,
            ts_echo: echo,
            window: tcp.window(),
            flags: tcp.flags(),
            ecn: traffic_class & 3,
            has_timestamp: timestamp.is_some(),
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
    fn a_timestamp_is_read_beside_sack_on_either_side() {
        let sack = [5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let timestamp = [8, 10, 0, 0, 0, 7, 0, 0, 0, 8];
        let padding = [1, 1];
        let (before, after) = (
            [&padding[..], &sack, &timestamp].concat(),
            [&padding[..], &timestamp, &sack].concat(),
        );
        for options in [before, after] {
            let mut segment = [0; 20].to_vec();
            segment[12] = ((20 + options.len() + 2) / 4 * 16) as u8;
            segment.extend(options);
            segment.extend([0, 0]);
            let record = AckRecord::read(&segment, 0, 0).expect("a whole header");
            assert_eq!((record.has_timestamp, record.ts_value, record.ts_echo), (true, 7, 8));
        }
    }

    #[test]
    fn a_record_takes_half_a_cache_line() {
        assert_eq!(size_of::<AckRecord>(), 32);
    }
}
