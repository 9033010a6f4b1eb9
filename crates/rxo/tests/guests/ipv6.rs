//! Tests of IPv6 from end to end: aggregates and single frames, with partial and complete checksums. Each
//! test also runs over IPv4, to expose differences between the two.

use rxo::device::Sent;
use rxo::frame::{ChecksumStatus, GsoKind};
use rxo::{Frame, Instant, Policy};
use rxo_testkit::{Packet, seg};

use crate::world::{Event, PEER, World, addressed, fixed, mac};

const SEGMENT_BYTES: usize = 1_000;

/// Returns for each IP version a segment, the offset at which its checksum begins, and the GSO kind of an
/// aggregate.
fn versions() -> [(Packet, u16, GsoKind); 2] {
    [(seg(), 34, GsoKind::TcpV4), (seg().v6(), 54, GsoKind::TcpV6)]
}

fn only(sent: &[Sent]) -> &Sent {
    let [sent] = sent else { panic!("{} packets", sent.len()) };
    sent
}

#[test]
fn each_guest_gets_its_own_aggregates() {
    for (segment, start, kind) in versions() {
        let world = World::new(&fixed(2));
        let mut payload = [Vec::new(), Vec::new()];
        for index in 0..10 {
            for guest in [0, 1] {
                let segment = segment.clone().flow(guest.into());
                let segment = segment.seq(100 + index * SEGMENT_BYTES as u32).len(SEGMENT_BYTES);
                let frame = segment.frame_at(Instant::ZERO);
                let bytes = &frame.bytes[usize::from(start) + 20..];
                payload[usize::from(guest)].extend_from_slice(bytes);
                world.at_us(0, Event::FromNic(addressed(frame, mac(guest), PEER)));
            }
        }
        let ended = world.run(Policy::linux_gro());
        for (sent, payload) in ended.to_guests.iter().zip(&payload) {
            let sent = only(sent);
            let gso = sent.offload.gso.unwrap();
            assert_eq!((sent.frames, gso.kind), (10, kind));
            assert_eq!(usize::from(gso.size.get()), SEGMENT_BYTES);
            let partial = ChecksumStatus::Partial { start, offset: 16 };
            assert_eq!(sent.offload.checksum, partial);
            assert!(sent.bytes.ends_with(payload), "{kind:?}");
        }
    }
}

/// Single frames keep their checksum on the way to a guest, between guests, and to the nic; GSO frames are
/// not cut.
#[test]
fn frames_pass_as_they_are_whatever_their_checksum() {
    for (segment, ..) in versions() {
        let single = segment.len(100);
        let kinds: [(&str, Packet); 4] = [
            ("complete", single.clone()),
            ("verified", single.clone().verified()),
            ("partial", single.clone().partial()),
            ("whole", single.clone().len(40_000).already_aggregated(1_000)),
        ];
        for (name, packet) in kinds {
            let frame = packet.frame_at(Instant::ZERO);
            let world = World::new(&fixed(2));
            world.at_us(0, Event::FromNic(addressed(frame.clone(), mac(0), PEER)));
            world.at_us(100, Event::FromGuest(0, addressed(frame.clone(), mac(1), mac(0))));
            world.at_us(200, Event::FromGuest(1, addressed(frame.clone(), PEER, mac(1))));
            let ended = world.run(Policy::linux_gro());
            for sent in [&ended.to_guests[0], &ended.to_guests[1], &ended.to_nic] {
                is_unchanged(only(sent), &frame, name);
            }
        }
    }
}

/// Asserts that the frame is unchanged except for its Ethernet addresses.
fn is_unchanged(sent: &Sent, frame: &Frame<Vec<u8>>, name: &str) {
    assert!(sent.bytes[12..] == frame.bytes[12..], "{name}");
    assert_eq!((sent.offload.gso, sent.offload.checksum), (frame.gso, frame.checksum), "{name}");
}
