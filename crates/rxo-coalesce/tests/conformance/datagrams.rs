//! UDP: the datagrams that Linux coalesces with `rx-udp-gro-forwarding`, and those that it leaves alone.

use rxo_coalesce::{Config, Engine, Policy, UdpRule};
use rxo_frame::{ChecksumStatus, GsoKind, Instant};
use rxo_testkit::promise::Observed;
use rxo_testkit::{Packet, seg, udp};

use crate::{groups, polls, run_all_forms};

const CE: u8 = 3;

fn observed(policy: &'static str, packets: &[Packet]) -> Observed {
    let mut script = polls(policy, &[packets.to_vec()]);
    script.setup.udp = Some(true);
    run_all_forms(script)
}

fn shown(packets: &[Packet]) -> Vec<Vec<usize>> {
    groups(&observed("linux-gro", packets))
}

/// Runs datagrams of these sizes in every form: both IP versions, tagged, and with incrementing IDs.
fn of_sizes(sizes: &[usize]) -> Vec<Vec<Vec<usize>>> {
    let bases = [udp(), udp().v6(), udp().vlan(7), udp().v6().extension(60, &[1, 4, 0, 0, 0, 0])];
    let datagram = |base: &Packet, number: usize| {
        base.clone().len(sizes[number]).seq(1000 * number as u32).id(number as u16)
    };
    let all = |base: &Packet| (0..sizes.len()).map(|number| datagram(base, number)).collect();
    bases.iter().map(all).map(|packets: Vec<Packet>| shown(&packets)).collect()
}

fn arrive(sizes: &[usize], expected: &[Vec<usize>]) {
    for shown in of_sizes(sizes) {
        assert_eq!(shown, expected, "{sizes:?}");
    }
}

#[test]
fn equal_datagrams_are_one() {
    arrive(&[1200; 3], &[vec![0, 1, 2]]);
    arrive(&[1; 3], &[vec![0, 1, 2]]);
}

#[test]
fn a_shorter_one_ends_them() {
    arrive(&[1200, 1200, 700, 700], &[vec![0, 1, 2], vec![3]]);
}

#[test]
fn a_longer_one_begins_others() {
    arrive(&[700, 1200, 1200], &[vec![0], vec![1, 2]]);
}

#[test]
fn at_most_64_are_one() {
    let rest: Vec<usize> = (64..70).collect();
    arrive(&[100; 70], &[(0..64).collect(), rest]);
}

#[test]
fn at_most_a_packet_of_65535_bytes_is_one() {
    let packets: Vec<_> = (0..50).map(|number| udp().len(1400).seq(number)).collect();
    let [first, rest] = &shown(&packets)[..] else { panic!("two") };
    assert_eq!((first.len(), rest.len()), (46, 4));
}

#[test]
fn without_a_checksum_a_datagram_is_delivered_after_those_before_it() {
    for base in [udp(), udp().v6()] {
        let packets = [base.clone(), base.clone(), base.clone().no_checksum(), base];
        assert_eq!(shown(&packets), [vec![0, 1], vec![2], vec![3]]);
    }
}

#[test]
fn marks_and_hop_limits_stay_apart_and_equal_marks_are_merged() {
    let ce = || udp().tos(CE);
    assert_eq!(shown(&[udp(), ce(), ce(), udp()]), [vec![0], vec![1, 2], vec![3]]);
    assert_eq!(shown(&[udp(), udp().ttl(9)]), [[0], [1]]);
}

#[test]
fn flows_do_not_disturb_each_other() {
    let packets: Vec<_> = (0..12).map(|number| udp().flow(number % 3).seq(number)).collect();
    assert_eq!(shown(&packets), [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]);
}

#[test]
fn tcp_between_the_same_ports_keeps_its_order_and_so_does_udp() {
    let packets = [udp(), udp(), seg(), seg().seq(200), udp(), seg().seq(300).pure_ack()];
    assert_eq!(shown(&packets), [vec![0, 1], vec![2, 3], vec![4], vec![5]]);
}

#[test]
fn tunnels_are_left_alone() {
    for port in [1701, 2152, 4500, 4789, 4790, 6080, 6081, 6635, 8472] {
        let packets = [udp().ports(9, port), udp().ports(9, port)];
        assert_eq!(shown(&packets), [[0], [1]], "{port}");
    }
}

#[test]
fn fragments_and_wrong_checksums_overtake_nothing_of_their_hosts() {
    for odd in [udp().fragment(0, true), udp().bad_checksum(), udp().bad_ip_checksum()] {
        let packets = [udp(), udp().ports(7, 8), odd];
        assert_eq!(shown(&packets), [[0], [1], [2]]);
    }
}

#[test]
fn a_sink_is_told_the_size_and_where_the_checksum_is() {
    for (base, start) in [(udp(), 34), (udp().v6(), 54), (udp().vlan(3), 38)] {
        let observed = observed("linux-gro", &[base.clone(), base.len(7)]);
        let shown = observed.deliveries().next().expect("a delivery");
        let merged = shown.merged.as_ref().expect("an aggregate");
        assert_eq!(merged.status, ChecksumStatus::Partial { start, offset: 6 });
        let gso = merged.gso.expect("a size");
        assert_eq!((gso.size.get(), gso.kind), (100, GsoKind::Udp));
    }
}

#[test]
fn datagrams_say_nothing_of_what_their_ports_acknowledge() {
    let ack = |number: u32| seg().pure_ack().ack(100 * number);
    let packets = [ack(1), ack(2), udp(), udp(), ack(3), ack(3)];
    let expected = [vec![0], vec![1], vec![2, 3], vec![4], vec![5]];
    assert_eq!(groups(&observed("gallatin-2007", &packets)), expected);
}

#[test]
fn an_engine_that_nobody_told_of_its_sink_coalesces_none() {
    let policy = Policy::linux_gro();
    assert_eq!(policy.udp, UdpRule::Auto);
    assert_eq!(policy.with_udp_if(true).udp, UdpRule::Equal);
    assert_eq!(policy.with_udp_if(false).udp, UdpRule::Off);
    for (policy, deliveries) in [(policy, 2), (policy.with_udp_if(true), 1)] {
        let mut engine = Engine::new(Config::new(policy, 1)).expect("numbers in range");
        let mut batch = vec![udp().frame(), udp().frame()];
        let mut made = 0;
        engine.poll(&mut batch, Instant::ZERO, |deliveries| made += deliveries.len());
        assert_eq!(made, deliveries, "{:?}", policy.udp);
        let counters = engine.counters();
        let taken = if deliveries == 1 { (2, 1) } else { (0, 0) };
        assert_eq!((counters.datagrams, counters.datagram_deliveries), taken);
    }
}
