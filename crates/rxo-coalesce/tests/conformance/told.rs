//! Metadata of deliveries: how many leading segments are alike, and whether checksums were verified. That it
//! is never wrong is checked in every test; here, that it is present when it should be.

use rxo_coalesce::{Config, Delivery, Engine, Policy};
use rxo_frame::Instant;
use rxo_testkit::{Packet, seg};

use crate::at;

/// Returns the number of segments of each aggregate, and how many of them are alike.
fn alike(packets: &[Packet]) -> Vec<(usize, usize)> {
    let mut engine = Engine::new(Config::new(Policy::remember(), 1)).expect("a valid policy");
    let mut batch = packets.iter().map(Packet::frame).collect();
    let mut found = Vec::new();
    engine.poll(&mut batch, Instant::ZERO, |deliveries| {
        found = deliveries
            .iter()
            .filter_map(|delivery| match delivery {
                Delivery::Aggregate(all) => Some((all.segment_count(), all.alike_segments())),
                _ => None,
            })
            .collect();
    });
    found
}

fn run(base: &Packet, count: u32) -> Vec<Packet> {
    (0..count).map(|number| at(base, 100 * number)).collect()
}

/// Returns for each delivery `true` if its checksums are known to be right.
fn intact(policy: Policy, packets: &[Packet]) -> Vec<bool> {
    let mut engine = Engine::new(Config::new(policy, 1)).expect("a valid policy");
    let mut batch = packets.iter().map(Packet::frame).collect();
    let mut found = Vec::new();
    engine.poll(&mut batch, Instant::ZERO, |mut deliveries| {
        while let Some(taken) = deliveries.take_next() {
            found.push(taken.is_intact());
        }
    });
    found
}

#[test]
fn what_was_verified_is_told() {
    let alone = [seg().flow(1), seg().flow(2).bad_checksum(), seg().flow(3).fin()];
    assert_eq!(intact(Policy::remember(), &alone), [true, false, false]);
    assert_eq!(
        intact(Policy { max_segments: 1, ..Policy::remember() }, &run(&seg(), 2)),
        [true; 2]
    );
    assert_eq!(intact(Policy::none(), &run(&seg(), 2)), [false; 2]);
    assert_eq!(intact(Policy::remember(), &run(&seg(), 2)), [true]);
}

#[test]
fn what_only_continues_is_alike() {
    assert_eq!(alike(&run(&seg(), 9)), [(9, 9)]);
    assert_eq!(alike(&run(&seg().v6().ts(5, 6), 9)), [(9, 9)]);
}

/// Without options, a segment with little payload is shorter than the headers that are compared. Nevertheless
/// such segments count as alike.
#[test]
fn segments_of_few_bytes_are_alike() {
    for bytes in 1..=13 {
        for base in [seg(), seg().v6()] {
            let short =
                |number: u32| at(&base, bytes * number).len(bytes as usize).id(number as u16);
            let one: Vec<_> = (0..6).map(short).collect();
            assert_eq!(alike(&one), [(6, 6)], "{bytes} bytes");
            let padded: Vec<_> = one.iter().map(|packet| packet.clone().padded()).collect();
            assert_eq!(alike(&padded), [(6, 6)], "{bytes} bytes, padded");
            let other = one.iter().map(|packet| packet.clone().flow(2));
            let in_turn: Vec<_> = one.iter().cloned().zip(other).flat_map(<[_; 2]>::from).collect();
            assert_eq!(alike(&in_turn), [(6, 6), (6, 6)], "{bytes} bytes, in turn");
        }
    }
}

#[test]
fn what_comes_after_a_difference_is_not() {
    let mut packets = run(&seg().ts(5, 6), 9);
    (6..9).for_each(|number| packets[number as usize] = at(&seg().ts(7, 6), 100 * number));
    assert_eq!(alike(&packets), [(9, 6)]);
    let mut packets = run(&seg(), 9);
    packets[8] = at(&seg(), 800).psh();
    assert_eq!(alike(&packets), [(9, 8)]);
    packets[8] = at(&seg(), 800).len(50);
    assert_eq!(alike(&packets), [(9, 8)]);
}

#[test]
fn flows_that_take_turns_have_their_own() {
    let (one, other) = (run(&seg().flow(1), 4), run(&seg().flow(2), 4));
    let packets: Vec<_> = one.into_iter().zip(other).flat_map(<[_; 2]>::from).collect();
    assert_eq!(alike(&packets), [(4, 4), (4, 4)]);
}
