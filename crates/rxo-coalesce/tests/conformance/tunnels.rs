//! TCP inside VXLAN and Geneve: the segments that are coalesced as in Linux, and those that are not.

use rxo_coalesce::{Config, Engine, Policy, TunnelRule};
use rxo_frame::{ChecksumStatus, GsoKind, Instant, LinkKind};
use rxo_testkit::promise::Observed;
use rxo_testkit::{Outer, Packet, geneve, seg, udp, vxlan};

use crate::{at, groups, polls, run_all_forms};

const CE: u8 = 3;

fn observed(policy: &'static str, packets: &[Packet]) -> Observed {
    let mut script = polls(policy, &[packets.to_vec()]);
    script.setup.tunnels = Some(true);
    run_all_forms(script)
}

fn shown(packets: &[Packet]) -> Vec<Vec<usize>> {
    groups(&observed("linux-gro", packets))
}

/// Returns the tunnels over both IP versions, with and without a checksum.
fn outers() -> Vec<Outer> {
    let kinds = [vxlan(), geneve(), geneve().options(&[0, 1, 2, 3, 4, 5, 6, 7]), vxlan().vlan(9)];
    let versions = kinds.into_iter().flat_map(|outer| [outer.clone(), outer.v6()]);
    versions.flat_map(|outer| [outer.clone(), outer.checksum()]).collect()
}

/// Builds the segment with this number from a sender whose outer and inner IDs increment.
fn nth(base: &Packet, outer: &Outer, number: u16) -> Packet {
    let inner = at(base, u32::from(number) * 100).id(number);
    inner.within(outer.clone().id(40 + number))
}

fn train(base: &Packet, outer: &Outer, count: u16) -> Vec<Packet> {
    (0..count).map(|number| nth(base, outer, number)).collect()
}

/// Returns the deliveries of three segments, where `odd` has changed an outer header of the middle segment.
fn with_odd_middle(outer: &Outer, odd: impl Fn(Outer) -> Outer) -> Vec<Vec<usize>> {
    let mut packets = train(&seg(), outer, 3);
    packets[1] = nth(&seg(), &odd(outer.clone()), 1);
    shown(&packets)
}

#[test]
fn a_train_in_any_tunnel_is_one() {
    for outer in outers() {
        for base in [seg(), seg().v6(), seg().ts(1, 2), seg().vlan(7)] {
            assert_eq!(shown(&train(&base, &outer, 5)), [[0, 1, 2, 3, 4]], "{outer:?} {base:?}");
        }
    }
}

#[test]
fn a_shorter_segment_and_psh_end_a_train() {
    for outer in outers() {
        let mut packets = train(&seg(), &outer, 4);
        packets[1] = at(&seg(), 100).id(1).len(7).within(outer.clone().id(41));
        packets[2] = at(&seg(), 107).id(2).psh().within(outer.clone().id(42));
        packets[3] = at(&seg(), 207).id(3).within(outer.id(43));
        assert_eq!(shown(&packets), [vec![0, 1], vec![2], vec![3]]);
    }
}

#[test]
fn identifiers_stay_or_count_inside_and_outside() {
    let packets = |ids: [u16; 3], outer_ids: [u16; 3], df: bool| {
        let packet = |n: usize| {
            let outer = vxlan().id(outer_ids[n]).df(df);
            at(&seg(), n as u32 * 100).id(ids[n]).within(outer)
        };
        shown(&[packet(0), packet(1), packet(2)])
    };
    let one = vec![vec![0, 1, 2]];
    assert_eq!(packets([7; 3], [3; 3], true), one);
    assert_eq!(packets([7, 8, 9], [3; 3], true), one);
    assert_eq!(packets([7; 3], [0xffff, 0, 1], true), one);
    assert_eq!(packets([7; 3], [3, 4, 5], false), one);
    // Without DF, equal IDs would identify fragments of one packet.
    assert_eq!(packets([7; 3], [3; 3], false), [[0], [1], [2]]);
    assert_eq!(packets([7; 3], [3, 4, 4], true), [vec![0, 1], vec![2]]);
    assert_eq!(packets([7; 3], [3, 3, 4], true), [vec![0, 1], vec![2]]);
    assert_eq!(packets([7; 3], [3, 9, 10], true), [vec![0], vec![1, 2]]);
    assert_eq!(packets([7, 9, 10], [3, 4, 5], true), [vec![0], vec![1, 2]]);
}

#[test]
fn headers_around_must_be_alike() {
    let apart = [[0], [1], [2]];
    for outer in [vxlan(), geneve(), vxlan().v6().checksum()] {
        assert_eq!(with_odd_middle(&outer, |it| it.ttl(9)), apart);
        assert_eq!(with_odd_middle(&outer, |it| it.tos(1)), apart);
        assert_eq!(with_odd_middle(&outer, |it| it.source_port(9)), apart);
        assert_eq!(with_odd_middle(&outer, |it| it.host(9)), apart);
        assert_eq!(with_odd_middle(&outer, |it| it.vlan(9)), apart);
    }
    assert_eq!(with_odd_middle(&vxlan(), Outer::checksum), apart);
    assert_eq!(with_odd_middle(&vxlan(), |it| it.df(false)), apart);
    assert_eq!(with_odd_middle(&geneve(), |it| it.options(&[1, 2, 3, 4])), apart);
    let options = |byte| geneve().options(&[1, 2, 3, byte]);
    assert_eq!(with_odd_middle(&options(4), |_| options(5)), apart);
}

#[test]
fn networks_and_tunnels_do_not_disturb_each_other() {
    let outers = [vxlan(), vxlan().network(8), geneve()];
    let packets: Vec<_> = (0..9).map(|n| nth(&seg(), &outers[n % 3], n as u16 / 3)).collect();
    assert_eq!(shown(&packets), [[0, 3, 6], [1, 4, 7], [2, 5, 8]]);
    let both: Vec<_> =
        (0..3).flat_map(|n| [nth(&seg(), &vxlan(), n), at(&seg(), n as u32 * 100).id(n)]).collect();
    assert_eq!(shown(&both), [[0, 2, 4], [1, 3, 5]]);
}

#[test]
fn marks_outside_pass_as_they_came() {
    assert_eq!(with_odd_middle(&vxlan(), |it| it.tos(CE)), [[0], [1], [2]]);
}

#[test]
fn a_wrong_checksum_inside_or_outside_overtakes_nothing() {
    let good = |n| nth(&seg(), &vxlan().checksum(), n);
    let other_flow = seg().flow(9).within(vxlan().network(99));
    let odd = [
        nth(&seg().bad_checksum(), &vxlan().checksum(), 2),
        nth(&seg().bad_checksum(), &vxlan(), 2),
        nth(&seg(), &vxlan().bad_checksum(), 2),
        nth(&seg(), &vxlan().bad_ip_checksum(), 2),
        nth(&seg(), &vxlan().fragment(), 2),
        nth(&seg().fragment(0, true), &vxlan(), 2),
        nth(&seg(), &vxlan().flags(1), 2),
        nth(&seg(), &vxlan().length_lie(-1), 2),
        nth(&seg().cut(30), &vxlan(), 2),
        udp().ports(5, 4789),
    ];
    for odd in odd {
        let expected = [vec![0, 1], vec![2], vec![3], vec![4]];
        let packets = [good(0), good(1), other_flow.clone(), odd.clone(), good(3)];
        assert_eq!(shown(&packets), expected, "{odd:?}");
    }
}

#[test]
fn other_packets_inside_keep_the_order_of_their_flow() {
    let within = |packet: Packet| packet.within(vxlan().id(42));
    let flow = [nth(&seg(), &vxlan(), 0), nth(&seg(), &vxlan(), 1)];
    for odd in [at(&seg(), 200).syn(), at(&seg(), 200).pure_ack(), at(&seg(), 200).ip_options(&[1])]
    {
        let packets = [&flow[..], &[within(odd)], &[nth(&seg(), &vxlan(), 2)]].concat();
        assert_eq!(shown(&packets), [vec![0, 1], vec![2], vec![3]]);
    }
    // A packet of another protocol does not overtake anything of the flow.
    let packets = [&flow[..], &[within(udp())], &[nth(&seg(), &vxlan(), 2)]].concat();
    assert_eq!(shown(&packets), [vec![2], vec![0, 1, 3]]);
}

#[test]
fn what_devices_say_of_one_checksum_proves_nothing_of_the_inner_one() {
    let packets = |base: Packet| train(&base, &vxlan().checksum(), 3);
    let one = vec![vec![0, 1, 2]];
    assert_eq!(shown(&packets(seg().verified())), one);
    assert_eq!(shown(&packets(seg().bad_checksum().verified())), [[0], [1], [2]]);
    // The inner checksum is partial: a local sender vouches for the payload.
    assert_eq!(shown(&packets(seg().partial())), one);
    assert_eq!(shown(&packets(seg().partial_elsewhere(8, 6))), [[0], [1], [2]]);
}

#[test]
fn a_gso_frame_in_a_tunnel_is_left_alone() {
    let whole = seg().len(300).already_aggregated(100).within(vxlan());
    assert_eq!(shown(&[nth(&seg(), &vxlan(), 0), whole]), [[0], [1]]);
}

#[test]
fn the_outer_packet_is_never_longer_than_ip_can_say() {
    for outer in [vxlan(), geneve().v6().checksum()] {
        let segment = |n: u32| seg().len(1_400).seq(n * 1_400).id(n as u16);
        let packets: Vec<_> =
            (0..50).map(|n| segment(n).within(outer.clone().id(n as u16))).collect();
        assert_eq!(shown(&packets).iter().map(Vec::len).collect::<Vec<_>>(), [46, 4]);
    }
}

#[test]
fn without_a_link_header_it_is_alike() {
    for outer in [vxlan(), geneve().v6().checksum()] {
        let packets: Vec<_> = train(&seg(), &outer, 3).into_iter().map(Packet::raw_ip).collect();
        let mut script = polls("linux-gro", &[packets]);
        (script.setup.tunnels, script.setup.link) = (Some(true), LinkKind::RawIp);
        assert_eq!(groups(&run_all_forms(script)), [[0, 1, 2]]);
    }
}

#[test]
fn a_sink_is_told_the_tunnel_and_where_the_inner_checksum_is() {
    let packets = train(&seg().v6(), &vxlan().checksum(), 2);
    let observed = observed("linux-gro", &packets);
    let merged = observed.deliveries().next().and_then(|shown| shown.merged.clone());
    let merged = merged.expect("an aggregate");
    assert_eq!(merged.status, ChecksumStatus::Partial { start: 104, offset: 16 });
    let gso = merged.gso.expect("a size");
    assert_eq!((gso.size.get(), gso.kind), (100, GsoKind::TcpV6));
    let tunnel = gso.tunnel.and_then(|tunnel| tunnel.as_udp()).expect("a tunnel");
    assert_eq!((tunnel.outer_transport, tunnel.inner_network), (34, 64));
    assert!(tunnel.has_checksum && !tunnel.is_outer_v6);
}

#[test]
fn an_engine_that_nobody_told_of_its_sink_looks_into_no_tunnel() {
    let policy = Policy::linux_gro();
    assert_eq!(policy.tunnels, TunnelRule::Auto);
    assert_eq!(policy.with_tunnels_if(true).tunnels, TunnelRule::On);
    assert_eq!(policy.with_tunnels_if(false).tunnels, TunnelRule::Off);
    for (policy, deliveries) in [(policy, 2), (policy.with_tunnels_if(true), 1)] {
        let mut engine = Engine::new(Config::new(policy, 1)).expect("numbers in range");
        let mut batch: Vec<_> = train(&seg(), &vxlan(), 2).iter().map(Packet::frame).collect();
        let mut made = 0;
        engine.poll(&mut batch, Instant::ZERO, |deliveries| made += deliveries.len());
        assert_eq!(made, deliveries, "{:?}", policy.tunnels);
        let counters = engine.counters();
        let taken = if deliveries == 1 { (2, 1) } else { (0, 0) };
        assert_eq!((counters.tunnelled, counters.tunnelled_deliveries), taken);
    }
}
