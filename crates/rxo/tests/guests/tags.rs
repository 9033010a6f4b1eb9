//! Tests of VLANs: the tag with which a frame is sent, for frames with the tag in their bytes and in their
//! metadata.

use std::num::NonZeroU16;

use rxo::device::Sent;
use rxo::frame::{ChecksumStatus, VlanTag};
use rxo::{Frame, Instant, Policy};
use rxo_testkit::seg;

use crate::world::{Event, PEER, TRUNK, World, access, addressed, mac, plain};

const SEVEN: u16 = 7;

fn tag(tci: u16) -> Option<VlanTag> {
    Some(VlanTag { tpid: NonZeroU16::new(0x8100).unwrap(), tci })
}

/// Returns `frame` with the tag in its bytes.
fn in_bytes(mut frame: Frame<Vec<u8>>, tci: u16) -> Frame<Vec<u8>> {
    let tag = [[0x81, 0x00], tci.to_be_bytes()].concat();
    frame.bytes.splice(12..12, tag);
    frame
}

fn only(sent: &[Sent]) -> &Sent {
    let [sent] = sent else { panic!("{} packets", sent.len()) };
    sent
}

/// Creates a world in which guest 0 is in VLAN 7, guest 1 in none, and guest 2 has a trunk port.
fn world() -> World {
    World::new(&[access(SEVEN, None), access(0, None), TRUNK])
}

#[test]
fn a_guest_of_a_vlan_gets_its_frames_without_a_tag() {
    let untagged = plain(mac(0), PEER, b"hello");
    let beside = Frame { vlan: tag(0x6000 | SEVEN), ..untagged.clone() };
    for tagged in [beside, in_bytes(untagged.clone(), 0x6000 | SEVEN)] {
        let world = world();
        world.at_us(0, Event::FromNic(tagged.clone()));
        let ended = world.run(Policy::linux_gro());
        let sent = only(&ended.to_guests[0]);
        assert_eq!((&sent.bytes, sent.vlan), (&untagged.bytes, None));
        assert!(ended.to_guests[1].is_empty(), "not its VLAN");
        let sent = only(&ended.to_guests[2]);
        assert_eq!((&sent.bytes, sent.vlan), (&tagged.bytes, tagged.vlan), "a trunk");
    }
}

#[test]
fn what_a_guest_of_a_vlan_sends_leaves_with_its_tag() {
    let world = world();
    let untagged = plain(PEER, mac(0), b"hello");
    world.at_us(0, Event::FromGuest(0, untagged.clone()));
    world.at_us(10, Event::FromGuest(0, in_bytes(untagged.clone(), 0x4000)));
    world.at_us(20, Event::FromGuest(0, in_bytes(untagged.clone(), 8)));
    let ended = world.run(Policy::linux_gro());
    assert!(ended.to_nic.iter().all(|sent| sent.bytes == untagged.bytes));
    let tags: Vec<_> = ended.to_nic.iter().map(|sent| sent.vlan).collect();
    assert_eq!(tags, [tag(SEVEN), tag(0x4000 | SEVEN)], "its priority stays");
    let left = ended.totals.guests[0].nic_out;
    assert_eq!(left.dropped, 1, "8 is not its VLAN");
    let given = 3 * untagged.bytes.len() + 2 * 4;
    assert_eq!(left.bytes_copied_aside, given as u64, "each frame once");
}

/// Offsets of a partial checksum count from the first byte, so they change when a tag is removed from the
/// bytes.
#[test]
fn a_partial_checksum_moves_with_its_header() {
    let world = world();
    let untagged = addressed(seg().seq(1).len(100).frame_at(Instant::ZERO), mac(0), mac(2));
    let checksum = ChecksumStatus::Partial { start: 38, offset: 16 };
    let frame = Frame { checksum, ..in_bytes(untagged.clone(), SEVEN) };
    world.at_us(0, Event::FromGuest(2, frame));
    let ended = world.run(Policy::linux_gro());
    let sent = only(&ended.to_guests[0]);
    assert_eq!(sent.bytes, untagged.bytes);
    assert_eq!(sent.offload.checksum, ChecksumStatus::Partial { start: 34, offset: 16 });
}

/// Segments with a tag in their metadata, and segments between the same addresses in another VLAN, are
/// different flows.
#[test]
fn aggregates_form_within_a_vlan() {
    let world = world();
    for index in 0..6_u32 {
        let segment = seg().seq(100 + index * 1_000).len(1_000).frame_at(Instant::ZERO);
        let frame = Frame { vlan: tag(SEVEN), ..addressed(segment, mac(0), PEER) };
        world.at_us(0, Event::FromNic(frame));
    }
    let ended = world.run(Policy::linux_gro());
    let sent = only(&ended.to_guests[0]);
    assert_eq!((sent.frames, sent.vlan), (6, None));
    assert_eq!(only(&ended.to_guests[2]).vlan, tag(SEVEN));
}
