//! Finds duplicates: packets that a capture contains twice. Such captures come from a mirror port that copies
//! both directions of a switch, or from the interface `any` on a bridge.
//!
//! Two packets are duplicates if they arrive at most [`WITHIN_NS`] apart and are equal from the IP header on,
//! except for fields that routers and network cards change (hop limit and checksums). A retransmission arrives
//! later, or has another IP identification. Pure ACKs without an identification are never counted as
//! duplicates, because a host may send several equal ACKs.
//!
//! Memory is a table of fixed size; a packet replaces the earliest packet of its set, so a duplicate after very
//! many other packets may be missed. All operations are O(1).

use rxo_frame::Instant;

use super::packet_kind::Segment;
use crate::report::Protocol;

/// The number of sets in the table, a power of two. At a million packets a second, the table contains nearly
/// all packets of the last millisecond.
const SETS: usize = 1_024;
/// The number of packets in a set.
const WAYS: usize = 4;
/// The longest time between a packet and its duplicate, in nanoseconds.
const WITHIN_NS: u64 = 1_000_000;
/// The number of bytes of a TCP segment that are compared: the longest header.
const COMPARED: usize = 60;
/// The number of bytes of a datagram that are compared. In a tunnel they contain the headers of a TCP segment over IPv6: without
/// them, full segments of a flow would be equal if the outer packets have no identification.
const COMPARED_OF_DATAGRAM: usize = 128;

/// The latest packets, by the hash of their contents.
#[derive(Debug)]
pub(super) struct Duplicates {
    /// The hashes and arrival times of packets. The hash of a packet determines its set; each set begins with
    /// its latest packet.
    latest: Box<[[(u64, Instant); WAYS]]>,
}

impl Duplicates {
    pub(super) fn new() -> Self {
        Self { latest: vec![[(0, Instant::ZERO); WAYS]; SETS].into() }
    }

    /// Returns `true` if the segment in `bytes`, which arrives at `now`, is a duplicate of an earlier one.
    #[inline]
    pub(super) fn is_duplicate(&mut self, segment: &Segment, bytes: &[u8], now: Instant) -> bool {
        let Some(hash) = hash(segment, bytes) else { return false };
        let Some(set) = self.latest.get_mut(hash as usize / 2 % SETS) else { return false };
        let is_recent =
            |(known, at): &(u64, Instant)| *known == hash && now.nanos_since(*at) <= WITHIN_NS;
        let is_duplicate = set.iter().any(is_recent);
        if !is_duplicate {
            set.rotate_right(1);
            set[0] = (hash, now);
        }
        is_duplicate
    }
}

/// Returns a hash of the fields in which duplicates are equal; the hash is never 0. `None` for segments that
/// cannot be distinguished from later, equal segments.
#[inline]
fn hash(segment: &Segment, bytes: &[u8]) -> Option<u64> {
    let network = bytes.get(segment.at.network as usize..)?;
    let transport = segment.at.transport.checked_sub(segment.at.network)? as usize;
    let is_v4 = network.first()? >> 4 == 4;
    let id = if is_v4 { u16::from_be_bytes(*network.get(4..)?.first_chunk()?) } else { 0 };
    if id == 0 && segment.at.payload_bytes() == 0 {
        return None;
    }
    let (header, segment_bytes) = network.split_at_checked(transport)?;
    let mut hash = Folded(u64::from(segment.at.segment_bytes()) << 16 | u64::from(id));
    hash.add(header.get(if is_v4 { 12..20 } else { 8..40 })?);
    let checksum = segment.checksum_at();
    let most = match segment.protocol {
        Protocol::Tcp => COMPARED,
        Protocol::Udp => COMPARED_OF_DATAGRAM,
    };
    let own = &segment_bytes[..segment_bytes.len().min(most)];
    hash.add(own.get(..checksum)?);
    // For a datagram these are its first payload bytes, which tell it apart from the next one.
    hash.add(own.get(checksum + 2..).unwrap_or_default());
    Some(hash.0 | 1)
}

/// A running hash: each word of eight bytes is multiplied, and both halves of the product are folded.
struct Folded(u64);

impl Folded {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
    }

    #[inline]
    fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(Self::FACTOR);
        self.0 = (product >> 64) as u64 ^ product as u64;
        self.0 = self.0.rotate_left(23) ^ Self::FACTOR;
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::LinkKind;
    use rxo_testkit::{Packet, geneve, seg, udp, vxlan};

    use super::super::packet_kind::PacketKind;
    use super::*;

    /// Returns `true` for each packet that is a duplicate. Packets are `gap_ns` apart.
    fn duplicates(packets: &[Packet], gap_ns: u64) -> Vec<bool> {
        let mut duplicates = Duplicates::new();
        let mut at_ns = 0;
        let mut is_duplicate = |packet: &Packet| {
            let bytes = packet.bytes();
            let PacketKind::Segment(segment) = PacketKind::read(LinkKind::Ethernet, &bytes) else {
                panic!()
            };
            at_ns += gap_ns;
            duplicates.is_duplicate(&segment, &bytes, Instant::from_nanos(at_ns))
        };
        packets.iter().map(&mut is_duplicate).collect()
    }

    #[test]
    fn equal_packets_are_duplicates_whatever_a_router_changed() {
        let one = seg().id(7).len(500).ttl(64);
        let rows = [
            (one.clone(), true),
            (one.clone().ttl(63), true),
            (one.clone().vlan(3), true),
            (one.clone().bad_checksum(), true),
            (one.clone().id(8), false),
            (one.clone().seq(600), false),
            (one.clone().ack(999), false),
            (one.clone().len(499), false),
            (one.clone().ports(1, 2), false),
        ];
        for (other, expected) in rows {
            assert_eq!(duplicates(&[one.clone(), other.clone()], 1_000)[1], expected, "{other:?}");
        }
        let datagram = udp().len(300);
        assert!(duplicates(&[datagram.clone(), datagram], 1_000)[1]);
    }

    #[test]
    fn a_retransmission_is_no_duplicate() {
        let one = seg().id(7).len(500);
        assert!(!duplicates(&[one.clone(), one], 2_000_000)[1]);
    }

    #[test]
    fn equal_acks_without_an_identification_are_no_duplicates() {
        let ack = seg().pure_ack();
        assert!(!duplicates(&[ack.clone().id(0), ack.clone().id(0)], 1_000)[1]);
        assert!(!duplicates(&[ack.clone().v6(), ack.clone().v6()], 1_000)[1]);
        assert!(duplicates(&[ack.clone().id(9), ack.id(9)], 1_000)[1]);
    }

    #[test]
    fn segments_in_a_tunnel_without_identification_are_told_apart() {
        let segment = |n: u32| seg().v6().ts(n, 1).seq(1 + n * 1_000).len(1_000);
        for outer in [vxlan().id(0), geneve().id(0), vxlan().v6()] {
            let packets: Vec<Packet> =
                [0, 1, 2, 2].map(|n| segment(n).within(outer.clone())).to_vec();
            assert_eq!(duplicates(&packets, 1_000), [false, false, false, true], "{outer:?}");
        }
    }
}
