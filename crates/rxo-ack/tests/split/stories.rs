use rxo_ack::{PassReason, SplitConfig, Splitter};
use rxo_frame::{ConfigError, VlanTag};

use crate::world::{FULL, World, acks, data, host};

const BASE: u32 = 1_000_000;

fn at(segments: u32) -> u32 {
    BASE.wrapping_add(segments * FULL)
}

#[test]
fn a_stretch_ack_leaves_as_one_for_every_two_segments() {
    let mut world = World::at(2, BASE);
    world.aggregate(BASE, 8 * FULL, 70);
    let sent = world.ack(at(8));
    assert_eq!(acks(&sent), [at(2), at(4), at(6), at(8)]);
    let echoes: Vec<_> = sent.iter().map(|(_, _, echo)| *echo).collect();
    assert_eq!(echoes, [70, 70, 70, 8], "the host's own is as it was");
    let counters = world.splitter.counters();
    assert_eq!((counters.templates, counters.inserted, counters.stretch_acks), (1, 3, 1));
    assert_eq!((counters.acks, counters.acks_out(), counters.expanded()), (2, 5, 4));
    assert_eq!(counters.frames, counters.templates + counters.passed_total());
}

#[test]
fn every_third_when_asked() {
    let mut world = World::at(3, BASE);
    world.aggregate(BASE, 8 * FULL, 70);
    assert_eq!(acks(&world.ack(at(8))), [at(3), at(6), at(8)]);
}

#[test]
fn a_pair_may_straddle_two_deliveries() {
    let mut world = World::at(2, BASE);
    world.aggregate(BASE, 3 * FULL, 70);
    world.aggregate(at(3), 3 * FULL, 71);
    let sent = world.ack(at(6));
    assert_eq!(acks(&sent), [at(2), at(4), at(6)]);
    assert_eq!(sent[1].2, 70, "the pair's first segment came in the first delivery");
}

#[test]
fn sequence_numbers_wrap() {
    let base = u32::MAX - 3 * FULL;
    let mut world = World::at(2, base);
    world.aggregate(base, 8 * FULL, 70);
    let expected = [2, 4, 6, 8].map(|segments| base.wrapping_add(segments * FULL));
    assert_eq!(acks(&world.ack(expected[3])), expected);
}

#[test]
fn what_is_no_advancing_pure_ack_passes_alone() {
    use PassReason::*;
    let stories = [
        (host(at(8)).len(5), Data),
        (host(at(8)).already_aggregated(100), Data),
        (host(at(8)).fin(), Flags),
        (host(at(8)).psh(), Flags),
        (host(at(8)).urg(), Flags),
        (host(at(8)).urgent(1), Flags),
        (host(at(8)).rst(), Flags),
        (host(at(8)).syn(), Flags),
        (host(at(8)).ece(), Ecn),
        (host(at(8)).cwr(), Ecn),
        (host(at(8)).sack(&[(1, 2)]), Options),
        (host(at(8)).df(false), MayBeFragmented),
        (host(at(8)).ip_options(&[1; 40]), Form),
        (host(at(8)).fragment(0, true), NotTcp),
        (rxo_testkit::arp(), NotTcp),
        (host(at(8)).ports(9, 9), UnknownFlow),
        (host(BASE), Duplicate),
        (host(BASE).window(501), WindowUpdate),
        (host(BASE - 1), OldAck),
        (host(at(8) - 1), UnknownBoundaries),
        (host(at(9)), UnknownBoundaries),
        (host(at(2)), FewSegments),
    ];
    for (packet, reason) in stories {
        let mut world = World::at(2, BASE);
        world.aggregate(BASE, 8 * FULL, 70);
        let before = world.passed(reason);
        let mut memory = [rxo_ack::AckSlot::EMPTY; 32];
        let frame = packet.frame();
        let inserted = world
            .splitter
            .split(frame.borrowed())
            .map(|template| template.expand(&mut memory).map(|acks| acks.len()));
        assert_eq!(inserted, None, "{reason:?}");
        assert_eq!(world.passed(reason), before + 1, "{reason:?}");
    }
}

#[test]
fn the_first_ack_seen_is_where_counting_begins() {
    let mut world = World::new(2);
    world.aggregate(BASE, 8 * FULL, 70);
    assert_eq!(world.ack(at(4)).len(), 1);
    assert_eq!(world.passed(PassReason::FirstAck), 1);
    assert_eq!(acks(&world.ack(at(8))), [at(6), at(8)]);
}

#[test]
fn after_a_gap_nothing_is_split_until_all_is_known_again() {
    let mut world = World::at(2, BASE);
    world.aggregate(BASE, 4 * FULL, 70);
    world.aggregate(at(5), 4 * FULL, 71);
    assert_eq!(world.ack(at(4)).len(), 1, "the runs before the gap are forgotten");
    world.segment(at(4), FULL, 72);
    assert_eq!(world.ack(at(9)).len(), 1, "the hole is filled: one ACK, as without coalescing");
    world.aggregate(at(9), 4 * FULL, 73);
    assert_eq!(acks(&world.ack(at(13))), [at(11), at(13)]);
}

#[test]
fn an_ack_on_data_of_the_host_counts_as_an_ack() {
    let mut world = World::at(2, BASE);
    world.aggregate(BASE, 8 * FULL, 70);
    assert_eq!(world.send(host(at(5)).len(10)).len(), 1);
    assert_eq!(acks(&world.ack(at(8))), [at(7), at(8)]);
}

#[test]
fn a_fin_is_acknowledged_with_its_segment() {
    let mut world = World::at(2, BASE);
    world.aggregate(BASE, 4 * FULL, 70);
    world.give(data(at(4), 100, 70).fin());
    assert_eq!(acks(&world.ack(at(4) + 101)), [at(2), at(4), at(4) + 101]);
}

#[test]
fn a_frame_of_several_segments_is_cut_as_it_says() {
    let mut world = World::at(2, BASE);
    world.give(data(BASE, 5 * FULL + 10, 70).already_aggregated(FULL as u16));
    assert_eq!(acks(&world.ack(at(5) + 10)), [at(2), at(4), at(5) + 10]);
}

#[test]
fn a_new_connection_on_the_same_ports_begins_anew() {
    let mut world = World::at(2, BASE);
    world.aggregate(BASE, 4 * FULL, 70);
    world.give(data(7, 0, 1).syn().no_ack());
    assert_eq!(world.ack(at(4)).len(), 1);
    assert_eq!(world.passed(PassReason::FirstAck), 2);
}

#[test]
fn a_reset_ends_what_is_known() {
    for from_host in [false, true] {
        let mut world = World::at(2, BASE);
        world.aggregate(BASE, 4 * FULL, 70);
        if from_host {
            world.send(host(BASE).rst());
        } else {
            world.give(data(BASE, 0, 1).rst());
        }
        assert_eq!(world.ack(at(4)).len(), 1);
    }
}

#[test]
fn full_size_is_learnt_anew_when_the_path_carries_less() {
    let mut world = World::at(2, BASE);
    let small = 1_000;
    world.give(data(BASE, 6 * small, 70).already_aggregated(small as u16));
    let sent = world.ack(BASE + 6 * small);
    assert_eq!(acks(&sent), [2, 4, 6].map(|segments| BASE + segments * small));
}

#[test]
fn a_tag_in_the_bytes_or_beside_them_is_one_flow() {
    let tag = |tci| VlanTag { tpid: std::num::NonZeroU16::new(0x8100).unwrap(), tci };
    let mut world = World::new(2);
    for (seq, segments) in [(BASE, 1), (at(1), 4)] {
        let packet = data(seq, segments * FULL, 1).already_aggregated(FULL as u16);
        let mut frame = packet.frame();
        frame.vlan = Some(tag(7));
        world.splitter.delivered_frame(frame.borrowed());
        let sent = world.send(host(seq + segments * FULL).vlan(7));
        assert_eq!(sent.len() as u32, segments.div_ceil(2), "the first ACK passes");
    }
}

#[test]
fn the_least_recently_used_flow_is_forgotten() {
    let mut world = World::at(2, BASE);
    world.aggregate(BASE, 4 * FULL, 70);
    (1..5).for_each(|flow| world.give(data(1, 100, 1).flow(flow)));
    assert_eq!(world.ack(at(4)).len(), 1);
    assert_eq!(world.passed(PassReason::UnknownFlow), 1);
    assert_eq!(world.splitter.counters().evicted, 1);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let refused = |config| Splitter::new(config).err();
    let config = SplitConfig { every: 0, ..SplitConfig::new(1) };
    assert_eq!(refused(config), Some(ConfigError { name: "every", value: 0, from: 1, to: 64 }));
    let config = SplitConfig { flows: 20_000, ..SplitConfig::new(1) };
    assert_eq!(
        refused(config),
        Some(ConfigError { name: "flows", value: 20_000, from: 1, to: 16_384 })
    );
}
