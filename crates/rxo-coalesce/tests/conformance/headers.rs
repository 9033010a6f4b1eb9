//! The IP header, fragments, extension headers, VLANs and the link.

use rxo_testkit::{Packet, arp, seg, udp};

use crate::{arrives, arrives_v4_and_v6, at, deliver_under, groups};

/// Builds two segments and changes the second.
fn second(base: &Packet, change: impl Fn(Packet) -> Packet) -> Vec<Packet> {
    vec![base.clone(), change(at(base, 100))]
}

#[test]
fn ip_ecn() {
    arrives_v4_and_v6(|base| second(&base, |packet| packet.tos(3)), &[100, 100]);
    arrives_v4_and_v6(|base| second(&base.tos(2), |packet| packet.tos(3)), &[100, 100]);
}

#[test]
fn ip_tos() {
    arrives_v4_and_v6(|base| second(&base, |packet| packet.tos(0x10)), &[100, 100]);
}

#[test]
fn ip_ttl() {
    arrives_v4_and_v6(|base| second(&base, |packet| packet.ttl(7)), &[100, 100]);
}

#[test]
fn ip_opt() {
    let stamped = seg().seq(200).ip_options(&[68, 8, 5, 0, 0, 0, 0, 0]);
    arrives(&[seg(), stamped.clone().seq(200), seg().seq(300)], &[100, 100, 100]);
    arrives(&[stamped.clone(), stamped.seq(300)], &[100, 100]);
}

#[test]
fn ip_frag4() {
    let fragments = [seg(), seg().seq(200).df(false).fragment(0, true)];
    let (observed, _) = deliver_under("linux-gro", &fragments);
    assert_eq!(groups(&observed), [vec![0], vec![1]]);
}

#[test]
fn ip_frag6() {
    let base = seg().v6();
    let packets = [
        base.clone(),
        base.clone().seq(200),
        base.clone().seq(300).fragment(0, false),
        base.seq(400),
    ];
    let (observed, _) = deliver_under("linux-gro", &packets);
    assert_eq!(groups(&observed), [vec![0, 1], vec![2], vec![3]]);
}

#[test]
fn ip_v6ext_same() {
    let base = seg().v6().extension(60, &[1, 4, 0, 0, 0, 0]);
    arrives(&second(&base, |packet| packet), &[200]);
}

#[test]
fn ip_v6ext_diff() {
    let base = seg().v6();
    let extended = |data: u8| base.clone().extension(60, &[1, 4, 0, 0, 0, data]);
    arrives(&[extended(0), extended(1).seq(200)], &[100, 100]);
    arrives(&[extended(0), base.clone().seq(200)], &[100, 100]);
    let hop_by_hop = base.clone().extension(0, &[1, 4, 0, 0, 0, 0]).seq(200);
    arrives(&[extended(0), hop_by_hop], &[100, 100]);
}

#[test]
fn ip_id_df1_inc() {
    arrives(&[seg().id(8), seg().seq(200).id(9)], &[200]);
    arrives(&[seg().id(u16::MAX), seg().seq(200).id(0)], &[200]);
}

#[test]
fn ip_header_checksum_wraps_while_the_id_counts() {
    // As the ID increments, the header checksum decrements; it passes through zero here.
    let header = seg().raw_ip().bytes();
    let start = u16::from_be_bytes([header[10], header[11]]).wrapping_sub(4);
    let segment = |number: u16| seg().seq(100 + u32::from(number) * 100).id(start + number);
    let packets: Vec<_> = (0..10).map(segment).collect();
    arrives(&packets, &[1000]);
}

#[test]
fn ip_id_df1_fixed() {
    arrives(&[seg().id(8), seg().seq(200).id(8)], &[200]);
}

#[test]
fn ip_id_df0_inc() {
    arrives(&[seg().df(false).id(8), seg().df(false).seq(200).id(9)], &[200]);
}

#[test]
fn ip_id_df0_fixed() {
    arrives(&[seg().df(false).id(8), seg().df(false).seq(200).id(8)], &[100, 100]);
}

#[test]
fn ip_id_df1_inc_fixed() {
    arrives(&[seg().id(8), seg().seq(200).id(9), seg().seq(300).id(9)], &[200, 100]);
}

#[test]
fn ip_id_df1_fixed_inc() {
    arrives(&[seg().id(8), seg().seq(200).id(8), seg().seq(300).id(9)], &[200, 100]);
}

#[test]
fn ip_df_differs() {
    arrives(&[seg().id(8), seg().seq(200).id(9).df(false)], &[100, 100]);
}

#[test]
fn ip_reserved_bit() {
    arrives(&[seg().reserved_bit(), seg().seq(200).reserved_bit()], &[100, 100]);
}

#[test]
fn ip_header_checksum() {
    arrives(&[seg(), seg().seq(200).bad_ip_checksum(), seg().seq(300)], &[100, 100, 100]);
}

#[test]
fn ipv6_flow_label() {
    let base = seg().v6().flow_label(5);
    arrives(&second(&base, |packet| packet), &[200]);
    arrives(&second(&base, |packet| packet.flow_label(6)), &[100, 100]);
}

#[test]
fn ipv6_with_another_next_header() {
    let (observed, _) = deliver_under("linux-gro", &[udp().v6(), udp().v6()]);
    assert_eq!(groups(&observed), [vec![0], vec![1]]);
}

#[test]
fn udp_and_arp_do_not_disturb_a_flow() {
    let packets = [seg(), udp(), arp().padded(), seg().seq(200)];
    let (observed, _) = deliver_under("linux-gro", &packets);
    assert_eq!(groups(&observed), [vec![1], vec![2], vec![0, 3]]);
}

#[test]
fn lengths_that_lie_and_truncated_packets() {
    let broken = [
        seg().seq(200).length_lie(1),
        seg().seq(200).length_lie(-120),
        seg().seq(200).header_lie(-1),
        seg().seq(200).offset_lie(-1),
        seg().seq(200).len(4).offset_lie(10),
        seg().seq(200).cut(1),
        seg().seq(200).cut(100),
        seg().seq(200).cut(115),
    ];
    for packet in broken {
        let packets = [seg(), packet.clone(), seg().seq(300)];
        let (observed, _) = deliver_under("linux-gro", &packets);
        assert_eq!(groups(&observed), [vec![0], vec![1], vec![2]], "{packet:?}");
    }
}

#[test]
fn options_that_are_not_there() {
    // The header length reaches into the TCP segment, so the ports are arbitrary. The only requirement is
    // that nothing is merged with the segment.
    let packets = [seg(), seg().seq(200).header_lie(10), seg().seq(300)];
    let (observed, _) = deliver_under("linux-gro", &packets);
    assert!(groups(&observed).contains(&vec![1]));
}

#[test]
fn a_length_that_cuts_the_payload_short_counts() {
    // Bytes beyond the packet's end are padding, so the checksum no longer matches.
    arrives(&second(&seg(), |packet| packet.length_lie(-50)), &[100, 50]);
}

#[test]
fn vlans_are_kept_apart() {
    arrives_v4_and_v6(|base| second(&base.vlan(7), |packet| packet), &[200]);
    arrives_v4_and_v6(|base| second(&base.vlan(7).vlan(8), |packet| packet), &[200]);
    arrives_v4_and_v6(|base| vec![base.clone().vlan(7), at(&base, 100).vlan(8)], &[100, 100]);
    arrives_v4_and_v6(|base| vec![base.clone().vlan(7), at(&base, 100)], &[100, 100]);
    // Another priority or another tag protocol gives the same flow, but not the same link header.
    arrives_v4_and_v6(|base| vec![base.clone().vlan(7), at(&base, 100).vlan(0x2007)], &[100, 100]);
    arrives_v4_and_v6(
        |base| vec![base.clone().vlan(7), at(&base, 100).tag(0x88a8, 7)],
        &[100, 100],
    );
}

#[test]
fn raw_packets_without_a_link_header() {
    use rxo_testkit::script::{Script, Setup};
    for base in [seg().raw_ip(), seg().v6().raw_ip()] {
        let frames = [base.clone(), base.seq(200)].iter().map(Packet::frame).collect();
        let mut setup = Setup::new("linux-gro");
        setup.link = rxo_frame::LinkKind::RawIp;
        let observed = crate::run_all_forms(Script::one_poll(setup, frames));
        assert_eq!(groups(&observed), [vec![0, 1]]);
    }
}
