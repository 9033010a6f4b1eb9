//! Finds the payload that is missing in a capture because the capturing program lost packets.
//!
//! A segment that the network lost is sent again, so it stands later in the capture. A segment that only the capture
//! lost reached its host, and is never sent again: the gap before the next segment stays.

use super::packet_kind::Segment;

/// The longest gap in bytes that counts as missing segments. A longer gap is another connection with the same ports, or
/// the time between two captures.
const MOST_BYTES: i32 = 1 << 26;

/// The end of a TCP flow's payload so far, as a sequence number; 0 if there was no payload. One flow in four billion has that
/// number itself, and loses one comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps(u32);

impl Gaps {
    /// Processes the next packet of the flow. Returns the bytes missing before it, and the bytes of payload with which it
    /// may fill an earlier gap.
    #[inline]
    pub(super) fn take(&mut self, segment: &Segment, bytes: &[u8]) -> (u32, u32) {
        if segment.is_pure_ack {
            return (0, 0);
        }
        let (seq, payload) = (segment.seq(bytes), segment.at.payload_bytes());
        let ahead = seq.wrapping_sub(self.0).cast_signed();
        if self.0 == 0 || segment.is_syn(bytes) || !(-MOST_BYTES..=MOST_BYTES).contains(&ahead) {
            self.0 = if payload > 0 { seq.wrapping_add(payload) } else { 0 };
            (0, 0)
        } else if ahead < 0 {
            let beyond = ahead.saturating_add_unsigned(payload).max(0);
            self.0 = self.0.wrapping_add(beyond.cast_unsigned());
            (0, payload)
        } else if payload > 0 {
            self.0 = seq.wrapping_add(payload);
            (ahead.unsigned_abs(), 0)
        } else {
            (0, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::LinkKind;
    use rxo_testkit::{Packet, seg};

    use super::super::packet_kind::PacketKind;
    use super::*;

    fn missing(packets: &[Packet]) -> u64 {
        let (mut gaps, mut sum) = (Gaps::default(), 0_u64);
        for packet in packets {
            let bytes = packet.bytes();
            let PacketKind::Segment(segment) = PacketKind::read(LinkKind::Ethernet, &bytes) else {
                panic!()
            };
            let (missing, late) = gaps.take(&segment, &bytes);
            sum = (sum + u64::from(missing)).saturating_sub(late.into());
        }
        sum
    }

    fn segment(number: u32) -> Packet {
        seg().seq(number.wrapping_mul(1_000)).len(1_000)
    }

    #[test]
    fn what_never_comes_is_missing() {
        let rows: [(&[u32], u64); 6] = [
            (&[0, 1, 2, 3], 0),
            (&[7, 8, 9], 0),
            (&[0, 2, 3, 6], 3_000),
            (&[0, 2, 1, 3], 0),
            (&[0, 3, 2, 1, 4, 1, 1], 0),
            (&[0, 1, 1, 1, 3], 1_000),
        ];
        for (numbers, expected) in rows {
            let packets: Vec<Packet> = numbers.iter().map(|number| segment(*number)).collect();
            assert_eq!(missing(&packets), expected, "{numbers:?}");
        }
    }

    #[test]
    fn another_connection_with_the_same_ports_misses_nothing() {
        let again = [segment(0), segment(1), seg().seq(3_000).len(0).syn(), segment(8), segment(9)];
        assert_eq!(missing(&again), 0);
        assert_eq!(missing(&[segment(0), segment(1_000_000)]), 0);
        let kept_alive = [segment(0), seg().seq(999).len(1), segment(1), segment(2)];
        assert_eq!(missing(&kept_alive), 0);
    }

    #[test]
    fn numbers_that_wrap_are_counted_as_others() {
        let at = |seq: u32| seg().seq(seq).len(1_000);
        assert_eq!(missing(&[at(u32::MAX - 499), at(500), at(2_500)]), 1_000);
    }
}
