//! A record of a pure ACK.

use super::{FixedHeader, MIN_HEADER_BYTES, TcpFlags, Timestamp};
use crate::SeqNumber;

/// One pure ACK in 32 bytes: all values that a sender needs from an ACK. A receive engine keeps one record per
/// aggregated ACK, and an endpoint processes the record instead of the ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AckRecord {
    /// The arrival time of the ACK's frame, in nanoseconds of the receiving host's clock.
    pub arrived_at_ns: u64,
    /// The sequence number (SEG.SEQ).
    pub seq: SeqNumber,
    /// The acknowledgement number (SEG.ACK).
    pub ack: SeqNumber,
    /// The timestamp value (TSval); 0 if there is no timestamp.
    pub ts_value: u32,
    /// The echoed timestamp (TSecr); 0 if there is no timestamp.
    pub ts_echo: u32,
    /// The window (SEG.WND), unscaled.
    pub window: u16,
    /// The control bits: ACK and the ECN flags.
    pub flags: TcpFlags,
    /// The ECN field of the ACK's IP header, 0 to 3 (RFC 3168 section 5).
    pub ecn: u8,
    /// `true` if the ACK has a timestamp.
    pub has_timestamp: bool,
}

impl AckRecord {
    /// Reads a segment without payload, from the first byte of its TCP header; bytes after the header are
    /// ignored. `traffic_class` is that of its IP header. `None` if the header is truncated. Fast for a
    /// timestamp at its usual offset.
    #[inline(always)]
    #[must_use]
    pub fn read(segment: &[u8], traffic_class: u8, arrived_at_ns: u64) -> Option<Self> {
        match segment.first_chunk() {
            Some(header) if has_timestamp_only(header) => {
                let tcp = FixedHeader::of(header)?;
                let timestamp = Timestamp { value: word(header, 24), echo: word(header, 28) };
                Some(Self::new(tcp, Some(timestamp), traffic_class, arrived_at_ns))
            }
            _ => Self::read_unusual(segment, traffic_class, arrived_at_ns),
        }
    }

    /// Reads a segment as [`AckRecord::read`] does, whatever options its TCP header has.
    #[inline(never)]
    fn read_unusual(segment: &[u8], traffic_class: u8, arrived_at_ns: u64) -> Option<Self> {
        let tcp = FixedHeader::of(segment)?;
        let timestamp = Timestamp::find(segment.get(MIN_HEADER_BYTES..tcp.header_bytes())?);
        Some(Self::new(tcp, timestamp, traffic_class, arrived_at_ns))
    }

    #[inline(always)]
    fn new(
        tcp: FixedHeader<'_>,
        timestamp: Option<Timestamp>,
        traffic_class: u8,
        arrived_at_ns: u64,
    ) -> Self {
        let Timestamp { value, echo } = timestamp.unwrap_or_default();
        Self {
            arrived_at_ns,
            seq: tcp.seq(),
            ack: tcp.ack(),
            ts_value: value,
            ts_echo: echo,
            window: tcp.window(),
            flags: tcp.flags(),
            ecn: traffic_class & 3,
            has_timestamp: timestamp.is_some(),
        }
    }
}

/// A header whose only option is a timestamp at its usual offset (RFC 7323, appendix A).
type TimestampedHeader = [u8; MIN_HEADER_BYTES + 12];

/// Returns `true` if the header has a timestamp at its usual offset and no other option.
#[inline]
fn has_timestamp_only(start: &TimestampedHeader) -> bool {
    start[12] >> 4 == 8 && word(start, 20) == 0x0101_080a
}

#[inline]
fn word(header: &TimestampedHeader, at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_usual_header_says_what_any_reader_finds_in_it(
            mut segment in prop::collection::vec(any::<u8>(), 0..70),
            looks_usual in [any::<bool>(), any::<bool>()],
            class: u8, now: u64,
        ) {
            if let Some(header) = segment.first_chunk_mut::<32>() {
                let [has_length, has_option] = looks_usual;
                header[12] = if has_length { 0x80 | header[12] & 0x0f } else { header[12] };
                if has_option {
                    header[20..24].copy_from_slice(&[1, 1, 8, 10]);
                }
            }
            let read = AckRecord::read(&segment, class, now);
            prop_assert_eq!(read, AckRecord::read_unusual(&segment, class, now));
        }
    }

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
