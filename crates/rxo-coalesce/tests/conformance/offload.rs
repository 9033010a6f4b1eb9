//! Metadata for a sink: partial checksums, segmentation, packets that arrived aggregated.

use rxo_frame::{ChecksumStatus, GsoKind};
use rxo_testkit::promise::Merged;
use rxo_testkit::script::{Script, Setup};
use rxo_testkit::{Packet, seg, udp};

use crate::{deliver_under, groups, run_all_forms};

fn merged(packets: &[Packet]) -> Merged {
    let (observed, _) = deliver_under("linux-gro", packets);
    let shown = observed.deliveries().next().expect("a delivery");
    assert_eq!(shown.frames.len(), packets.len(), "all in one");
    shown.merged.clone().expect("an aggregate")
}

#[test]
fn a_tap_is_told_needs_csum_with_the_right_places_and_a_gso_size() {
    for (base, start, kind) in [
        (seg(), 34, GsoKind::TcpV4),
        (seg().v6(), 54, GsoKind::TcpV6),
        (seg().vlan(3), 38, GsoKind::TcpV4),
        (seg().v6().extension(60, &[1, 4, 0, 0, 0, 0]), 62, GsoKind::TcpV6),
    ] {
        let said = merged(&[base.clone(), base.seq(200).len(7)]);
        assert_eq!(said.status, ChecksumStatus::Partial { start, offset: 16 });
        let gso = said.gso.unwrap();
        assert_eq!((gso.size.get(), gso.kind, gso.ecn), (100, kind, false));
    }
}

#[test]
fn partial_checksums_are_merged_unread() {
    for base in [seg().partial(), seg().v6().partial()] {
        let said = merged(&[base.clone(), base.seq(200)]);
        assert!(said.status.is_partial());
    }
}

/// A partial checksum of an inner packet, whose completion changes the payload. It must not turn a wrong
/// checksum of the outer packet into a right one.
#[test]
fn a_partial_checksum_elsewhere_vouches_for_nothing() {
    let inside = |packet: Packet| packet.partial_elsewhere(24, 16);
    for (first, second) in [
        (seg(), seg().seq(200)),
        (seg().bad_checksum(), seg().seq(200).bad_checksum()),
        (seg().v6(), seg().v6().seq(200)),
        (udp(), udp()),
    ] {
        for trusts_checksums in [false, true] {
            let frames =
                [inside(first.clone()), inside(second.clone())].map(|packet| packet.frame());
            let setup = Setup { trusts_checksums, ..Setup::new("linux-gro") };
            let observed = run_all_forms(Script::one_poll(setup, frames.to_vec()));
            assert_eq!(groups(&observed), [vec![0], vec![1]]);
        }
    }
}

/// The start is right but the field is not that of TCP, or the reverse.
#[test]
fn a_partial_checksum_in_another_field_vouches_for_nothing() {
    for (bytes, offset) in [(0, 6), (0, 17), (2, 16), (u16::MAX - 34, 16)] {
        let packets = [
            seg().partial_elsewhere(bytes, offset),
            seg().seq(200).partial_elsewhere(bytes, offset),
        ];
        let (observed, _) = deliver_under("linux-gro", &packets);
        assert_eq!(groups(&observed), [vec![0], vec![1]], "{bytes} {offset}");
    }
}

#[test]
fn a_partial_and_a_complete_checksum_stay_apart() {
    let (observed, _) = deliver_under("linux-gro", &[seg().partial(), seg().seq(200)]);
    assert_eq!(groups(&observed), [vec![0], vec![1]]);
    let (observed, _) = deliver_under("linux-gro", &[seg(), seg().seq(200).partial()]);
    assert_eq!(groups(&observed), [vec![0], vec![1]]);
}

#[test]
fn a_packet_that_came_aggregated_passes_in_order() {
    let large = seg().seq(200).len(4344).already_aggregated(1448);
    let packets = [seg(), large, seg().seq(4544)];
    let (observed, _) = deliver_under("linux-gro", &packets);
    assert_eq!(groups(&observed), [vec![0], vec![1], vec![2]]);
}

#[test]
fn a_device_that_verified_is_believed() {
    let wrong = seg().bad_checksum();
    let packets = [wrong.clone().verified(), wrong.clone().verified().seq(200)];
    let (observed, _) = deliver_under("linux-gro", &packets);
    assert_eq!(groups(&observed), [vec![0, 1]]);
    let (observed, _) = deliver_under("linux-gro", &[wrong.clone(), wrong.seq(200)]);
    assert_eq!(groups(&observed), [vec![0], vec![1]]);
}

#[test]
fn a_bad_checksum_leaves_without_an_offload_header() {
    use rxo_coalesce::{Config, Engine, Policy};
    use rxo_frame::{Gather, Instant, Offload};
    let mut engine = Engine::new(Config::new(Policy::linux_gro(), 1)).unwrap();
    // A good pair comes first: its metadata must not leak into the next delivery.
    let packets = [seg(), seg().seq(200), seg().seq(300).bad_checksum()];
    let mut batch: Vec<_> = packets.iter().map(Packet::frame).collect();
    let mut last = None;
    engine.poll(&mut batch, Instant::ZERO, |deliveries| {
        last = deliveries.iter().last().map(Gather::offload);
    });
    assert_eq!(last, Some(Offload::default()));
}
