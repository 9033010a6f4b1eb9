//! Payload, flags, sequence and options: the rows of the kernel's self-test.

use rxo_testkit::oracle::HoldRule;
use rxo_testkit::script::Step;
use rxo_testkit::{Packet, seg};

use crate::{arrives, arrives_v4_and_v6, at, payload_lengths, polls, run_all_forms};

#[test]
fn data_same() {
    arrives_v4_and_v6(|base| vec![base.clone(), at(&base, 100)], &[200]);
}

#[test]
fn data_lrg_sml() {
    arrives_v4_and_v6(|base| vec![base.clone(), at(&base, 100).len(50)], &[150]);
}

#[test]
fn data_lrg_1byte() {
    arrives_v4_and_v6(|base| vec![base.clone(), at(&base, 100).len(1).padded()], &[101]);
    arrives_v4_and_v6(|base| vec![base.clone(), at(&base, 100).len(1).padded_with(0xee)], &[101]);
}

#[test]
fn data_sml_lrg() {
    arrives_v4_and_v6(|base| vec![base.clone().len(50), at(&base, 50)], &[50, 100]);
}

#[test]
fn data_burst() {
    for base in [seg(), seg().v6()] {
        let bursts = [vec![base.clone(), at(&base, 100)], vec![at(&base, 200), at(&base, 300)]];
        let mut script = polls("linux-gro", &bursts);
        script.steps.insert(3, Step::Advance(std::time::Duration::from_millis(100)));
        let observed = run_all_forms(script.clone());
        assert_eq!(payload_lengths(&script, &observed), [200, 200]);
    }
}

#[test]
fn ack() {
    arrives_v4_and_v6(
        |base| {
            let ack = base.pure_ack();
            vec![ack.clone(), ack.clone(), ack.ack(101)]
        },
        &[0, 0, 0],
    );
}

/// Builds `number` segments of flow 0, with a pure ACK of the flow `other` between every two.
fn in_turn(base: &Packet, number: u32, other: impl Fn(u32) -> u32) -> Vec<Packet> {
    let segment = |turn: u32| at(base, turn * 100).id(turn as u16).ts(1, 2);
    let ack = |turn: u32| base.clone().flow(other(turn)).ts(1, 2).pure_ack();
    let pairs = (0..number).flat_map(|turn| [segment(turn), ack(turn)]);
    pairs.take(2 * number as usize - 1).collect()
}

#[test]
fn acks_of_other_flows_do_not_end_an_aggregate() {
    arrives_v4_and_v6(|base| in_turn(&base, 4, |turn| 1 + turn), &[0, 0, 0, 400]);
}

#[test]
fn acks_of_another_version_of_ip_do_not_end_an_aggregate() {
    for (data, ack) in [(seg(), seg().v6()), (seg().v6(), seg())] {
        let [first, _, second, _, third] = in_turn(&data, 3, |_| 0).try_into().unwrap();
        let ack = ack.ts(1, 2).pure_ack();
        arrives(&[first, ack.clone(), second, ack, third], &[0, 0, 300]);
    }
}

/// Every second ACK belongs to the flow itself, and may not overtake its data.
#[test]
fn acks_of_the_flow_itself_end_an_aggregate() {
    arrives_v4_and_v6(|base| in_turn(&base, 5, |turn| 1 - turn % 2), &[0, 200, 0, 0, 200, 0, 100]);
}

/// A policy that limits the number of packets counts pure ACKs, too.
#[test]
fn the_number_of_packets_ends_an_aggregate_between_acks() {
    let packets = in_turn(&seg(), 7, |turn| 1 + turn);
    let mut script = polls("linux-gro", &[packets]);
    script.setup.hold = Some(HoldRule::Packets(5));
    let observed = run_all_forms(script.clone());
    let lengths = payload_lengths(&script, &observed);
    assert_eq!(lengths, [0, 0, 300, 0, 0, 0, 200, 0, 200]);
}

#[test]
fn single() {
    arrives_v4_and_v6(|base| vec![base], &[100]);
}

/// Builds five segments; `change` changes those whose number is in `which`.
fn five(base: &Packet, which: &[u32], change: impl Fn(Packet) -> Packet) -> Vec<Packet> {
    let segment = |number: u32| {
        let plain = at(base, number * 100);
        if which.contains(&number) { change(plain) } else { plain }
    };
    (0..5).map(segment).collect()
}

#[test]
fn flags_psh() {
    arrives_v4_and_v6(|base| five(&base, &[2], Packet::psh), &[300, 200]);
}

#[test]
fn flags_cwr() {
    arrives_v4_and_v6(|base| five(&base, &[1, 2], Packet::cwr), &[100, 100, 100, 200]);
}

fn between_data(base: &Packet, flag: impl Fn(Packet) -> Packet) -> Vec<Packet> {
    vec![base.clone(), at(base, 100), flag(at(base, 200).len(0)), at(base, 300), at(base, 400)]
}

#[test]
fn flags_syn() {
    arrives_v4_and_v6(|base| between_data(&base, Packet::syn), &[200, 0, 200]);
}

#[test]
fn flags_rst() {
    arrives_v4_and_v6(|base| between_data(&base, Packet::rst), &[200, 0, 200]);
}

#[test]
fn flags_urg() {
    arrives_v4_and_v6(|base| between_data(&base, Packet::urg), &[200, 0, 200]);
}

#[test]
fn flags_fin() {
    arrives_v4_and_v6(|base| between_data(&base, Packet::fin), &[200, 0, 200]);
    arrives_v4_and_v6(|base| five(&base, &[2], Packet::fin), &[300, 200]);
}

#[test]
fn flags_ece_differ() {
    arrives_v4_and_v6(|base| five(&base, &[2, 3], Packet::ece), &[200, 200, 100]);
}

#[test]
fn flags_ae_differ() {
    arrives_v4_and_v6(|base| five(&base, &[2, 3], |packet| packet.flags(0x110)), &[200, 200, 100]);
}

#[test]
fn flags_without_ack_or_reserved() {
    arrives_v4_and_v6(|base| five(&base, &[1], Packet::no_ack), &[100, 100, 300]);
    for bit in [0x200, 0x400, 0x800] {
        arrives_v4_and_v6(|base| five(&base, &[1], |p| p.flags(0x010 | bit)), &[100, 100, 300]);
    }
}

#[test]
fn urgent_pointer_without_flag() {
    arrives_v4_and_v6(|base| five(&base, &[1], |packet| packet.urgent(1)), &[100, 100, 300]);
}

#[test]
fn tcp_csum() {
    arrives_v4_and_v6(|base| vec![base.clone(), at(&base, 100).bad_checksum()], &[100, 100]);
}

#[test]
fn tcp_seq() {
    arrives_v4_and_v6(|base| vec![base.clone(), at(&base, 101)], &[100, 100]);
}

#[test]
fn tcp_ts() {
    arrives_v4_and_v6(
        |base| {
            vec![
                base.clone().ts(0, 0),
                at(&base, 100).ts(0, 0),
                at(&base, 200).ts(100, 0),
                at(&base, 300).ts_in_the_middle(100, 0),
                at(&base, 400).ts_first(100, 0),
            ]
        },
        &[200, 100, 100, 100],
    );
}

#[test]
fn tcp_opt() {
    arrives_v4_and_v6(
        |base| vec![base.clone().ts(0, 0), at(&base, 100).ts(0, 0), at(&base, 200).window_scale(7)],
        &[200, 100],
    );
}

#[test]
fn tcp_options_of_any_kind_merge_with_their_equals() {
    let with = |packet: Packet| packet.options(&[1, 1, 30, 6, 1, 2, 3, 4]);
    arrives_v4_and_v6(|base| vec![with(base.clone()), with(at(&base, 100))], &[200]);
    arrives_v4_and_v6(
        |base| vec![with(base.clone()), at(&base, 100).options(&[1, 1, 30, 6, 1, 2, 3, 5])],
        &[100, 100],
    );
}

#[test]
fn tcp_options_whose_length_lies() {
    arrives_v4_and_v6(
        |base| vec![base.clone().options(&[8, 40, 0, 0]), at(&base, 100).options(&[8, 40, 0, 0])],
        &[100, 100],
    );
}

#[test]
fn sequence_numbers_wrap() {
    let near = |base: Packet| base.seq(u32::MAX - 149);
    arrives(&[near(seg()), seg().seq(u32::MAX - 49), seg().seq(50)], &[300]);
}

#[test]
fn the_ack_number_or_window_changes() {
    arrives_v4_and_v6(|base| five(&base, &[2, 3, 4], |packet| packet.ack(101)), &[200, 300]);
    arrives_v4_and_v6(|base| five(&base, &[2, 3, 4], |packet| packet.window(9)), &[200, 300]);
}
