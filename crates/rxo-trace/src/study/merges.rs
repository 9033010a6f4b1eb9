//! Finds packets that were merged before the capture although a link could carry them.
//!
//! A packet that is longer than any link allows was obviously merged. A packet that was merged from two
//! segments of 700 bytes is not obvious. But a sender numbers its IPv4 packets (the IPv4 identification), and
//! GRO keeps the number of the first segment: after a packet of three segments, the number advances by three.
//! Therefore the segments of a packet are counted by the number of the next packet, if the next packet
//! continues its sequence numbers. If packets with different counts agree on the length of a segment, they were
//! merged. If a sender numbers the packets of all its flows together, the counts do not agree on a length.
//!
//! Without such numbers (IPv6, a constant number, or random ones), only packets of more than 1,460 bytes are found, if their
//! payload is a multiple of the length of full segments. Smaller merged packets cannot be recognized.

use super::packet_kind::Segment;

/// The largest number of segments that GRO merges.
const MOST_SEGMENTS: u16 = 64;
/// The number of times that packets must agree on the length of a segment before merged packets are counted.
const ENOUGH: u8 = 3;
/// The largest payload of a packet on the most frequent links, in bytes.
const FULL_BYTES: u16 = 1_460;
/// The smallest payload with which a segment counts as full, in bytes.
const LEAST_FULL_BYTES: u16 = 1_200;

/// The state of one flow: the properties of its last data packet, and the length of its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Merges {
    /// The sequence number after the last packet.
    next_seq: u32,
    /// The IPv4 identification of the last packet; 0 for IPv6.
    id: u16,
    /// The payload of the last packet in bytes; 0 if the last packet must not be compared with the next one.
    payload: u16,
    /// The length of a segment in bytes on which packets have agreed so far.
    unit: u16,
    /// The number of segments of the last packet whose length agreed with `unit`.
    segments: u8,
    /// The number of times that packets with different segment counts agreed on the length of a segment; at
    /// most [`ENOUGH`].
    agreed: u8,
}

impl Merges {
    /// Processes the next packet of a TCP flow. Returns the payload of the previous packet in bytes if the
    /// previous packet was merged; otherwise 0.
    #[inline]
    pub(super) fn take(&mut self, segment: &Segment, bytes: &[u8]) -> u64 {
        let payload = segment.at.payload_bytes();
        let (seq, id) = (segment.seq(bytes), segment.identification(bytes));
        let merged = if self.payload > 0 && seq == self.next_seq && payload > 0 {
            let step = id.map_or(0, |id| id.wrapping_sub(self.id));
            self.is_merged(step)
        } else {
            false
        };
        let before = self.payload;
        self.next_seq = seq.wrapping_add(payload);
        self.id = id.unwrap_or_default();
        self.payload = u16::try_from(payload).unwrap_or_default();
        if merged { before.into() } else { 0 }
    }

    /// Returns `true` if the last packet was merged. `step` is the difference between the IPv4 identification
    /// of the next packet and that of the last packet.
    fn is_merged(&mut self, step: u16) -> bool {
        let is_counted = (1..=MOST_SEGMENTS).contains(&step);
        let segments = if is_counted { step } else { self.by_length() };
        // The last segment of a packet may be shorter.
        let least = self.unit.saturating_mul(segments - 1);
        let is_consistent = least < self.payload && self.payload <= least.saturating_add(self.unit);
        if self.payload == self.unit.saturating_mul(segments) {
            self.agreed += u8::from(self.segments != segments as u8 && self.agreed < ENOUGH);
            self.segments = segments as u8;
        } else if self.agreed < ENOUGH && !is_consistent && self.payload.is_multiple_of(segments) {
            (self.unit, self.segments, self.agreed) = (self.payload / segments, segments as u8, 0);
        }
        segments > 1 && self.agreed == ENOUGH && is_consistent
    }

    /// Returns the number of segments of the last packet, computed from its length alone: that of full segments into which it
    /// can be divided, of the known length if possible. 1 if the packet may be a single segment.
    fn by_length(&self) -> u16 {
        if self.payload <= FULL_BYTES {
            return 1;
        }
        let is_full = self.unit >= LEAST_FULL_BYTES && self.unit <= FULL_BYTES;
        if is_full && self.payload.is_multiple_of(self.unit) {
            return self.payload / self.unit;
        }
        let mut counts = self.payload.div_ceil(FULL_BYTES)..=self.payload / LEAST_FULL_BYTES;
        counts.find(|count| self.payload.is_multiple_of(*count)).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::LinkKind;
    use rxo_testkit::{Packet, seg};

    use super::super::packet_kind::PacketKind;
    use super::*;

    /// Returns the merged payload of a flow whose packets have these payloads, each `step` numbers after the one before.
    fn merged(packets: &[(usize, u16)], template: impl Fn() -> Packet) -> u64 {
        let (mut seq, mut id, mut merges) = (1, 1, Merges::default());
        let take = |(payload, step): &(usize, u16)| {
            let bytes = template().seq(seq).id(id).len(*payload).bytes();
            (seq, id) = (seq + *payload as u32, id.wrapping_add(*step));
            let PacketKind::Segment(segment) = PacketKind::read(LinkKind::Ethernet, &bytes) else {
                panic!()
            };
            merges.take(&segment, &bytes)
        };
        packets.iter().map(take).sum()
    }

    fn times(count: usize, packets: &[(usize, u16)]) -> Vec<(usize, u16)> {
        packets.iter().copied().cycle().take(count * packets.len()).collect()
    }

    #[test]
    fn numbers_that_advance_by_the_segments_show_them() {
        let small = times(20, &[(500, 1), (1_000, 2), (1_500, 3)]);
        let all = 20 * 2_500;
        assert!(merged(&small, seg) > all * 8 / 10, "{}", merged(&small, seg));
        let with_ends = times(20, &[(1_448, 1), (4_344, 3), (3_000, 3), (2_896, 2)]);
        assert!(merged(&with_ends, seg) > 20 * 10_240 * 8 / 10);
    }

    #[test]
    fn single_segments_are_no_merged_ones_however_they_are_numbered() {
        let rows: [&[(usize, u16)]; 6] = [
            &[(1_448, 1)],
            &[(1_448, 2)],
            &[(1_448, 1), (1_448, 3), (1_448, 2), (1_448, 7)],
            &[(100, 1), (200, 1), (300, 1)],
            &[(8_948, 1), (2_000, 1)],
            &[(1_000, 0), (500, 0)],
        ];
        for row in rows {
            assert_eq!(merged(&times(50, row), seg), 0, "{row:?}");
        }
    }

    #[test]
    fn without_numbers_only_multiples_of_full_segments_are_found() {
        let v6 = || seg().v6();
        assert!(
            merged(&times(20, &[(1_428, 1), (2_856, 2), (4_284, 3)]), v6) > 20 * 7_140 * 8 / 10
        );
        assert_eq!(merged(&times(20, &[(500, 1), (1_000, 2)]), v6), 0);
        assert_eq!(merged(&times(20, &[(8_928, 1)]), v6), 0);
    }

    #[test]
    fn a_flow_that_begins_with_merged_packets_is_recognized_by_its_lengths() {
        let v6 = || seg().v6();
        let packets = times(20, &[(2_856, 0), (4_284, 0), (5_712, 0)]);
        assert!(merged(&packets, v6) > 20 * 12_852 * 8 / 10, "{}", merged(&packets, v6));
        // A constant number, and random ones.
        for step in [0, 7_919] {
            let packets = times(20, &[(2_896, step), (4_344, step), (2_896, step), (8_688, step)]);
            assert!(merged(&packets, seg) > 20 * 18_824 * 8 / 10, "{step}");
        }
        for single in [&[(8_960, 0)][..], &[(8_960, 0), (5_000, 0), (3_000, 0)], &[(4_040, 0)]] {
            assert_eq!(merged(&times(50, single), v6), 0, "{single:?}");
        }
    }
}
