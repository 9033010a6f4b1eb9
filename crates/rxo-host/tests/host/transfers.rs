//! Text goes both ways, whatever the link does.

use rxo_coalesce::Policy;
use rxo_device::MemoryOptions;

use crate::world::{World, drain, fill, options, pattern};

/// Sends `bytes` from the client to the server and back at the same time; everything must arrive.
fn both_ways(world: &mut World, bytes: usize) {
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let data = pattern(bytes);
    let ends = [&stream, &accepted];
    let (mut sent, mut read) = ([0, 0], [Vec::new(), Vec::new()]);
    for _ in 0..1_000_000 {
        for side in 0..2 {
            sent[side] += fill(ends[side], &data[sent[side]..]);
            let (more, is_done) = drain(ends[1 - side]).unwrap();
            read[side].extend(more);
            assert!(!is_done);
        }
        if read.iter().all(|read| read.len() == bytes) {
            break;
        }
        world.pass(std::time::Duration::from_micros(100));
    }
    assert!(read[0] == data && read[1] == data, "{:?}", read.each_ref().map(Vec::len));
}

#[test]
fn whole_with_large_sends() {
    both_ways(&mut World::new(), 3_000_000);
}

#[test]
fn whole_with_single_frames() {
    let mut world = World::with(MemoryOptions { gso_bytes: 0, ..options() }, |_| {});
    both_ways(&mut world, 3_000_000);
    let counters = world.server.counters();
    assert!(counters.engine.aggregates > 0, "frames are coalesced");
}

#[test]
fn whole_without_coalescing() {
    let mut world = World::with(MemoryOptions { gso_bytes: 0, ..options() }, |config| {
        config.engine.policy = Policy::none();
    });
    both_ways(&mut world, 1_000_000);
    assert_eq!(world.server.counters().engine.aggregates, 0);
}

#[test]
fn whole_over_a_small_queue_that_drops() {
    let options = MemoryOptions { gso_bytes: 0, most_packets: 20, ..options() };
    let mut world = World::with(options, |_| {});
    both_ways(&mut world, 500_000);
    assert!(world.client.counters().sink.dropped > 0, "it did drop");
}

/// A kernel without segmentation: nothing is lost, and it is not asked again for each large send.
#[test]
fn whole_over_a_device_that_refuses_large_sends() {
    let mut world = World::new();
    world.there.refuse_aggregates();
    both_ways(&mut world, 3_000_000);
    let (refused, taken) = (world.client.counters(), world.server.counters());
    assert_eq!((refused.sink.dropped, taken.refused_sends), (0, 0));
    assert_eq!(refused.refused_sends, refused.sink.fallbacks);
    assert!((1..10).contains(&refused.refused_sends), "{}", refused.refused_sends);
}
