//! Tests that frames pass unchanged: in order, with their bytes, checksum status and other metadata.

use std::time::Duration;

use rxo::worker::Directions;
use rxo::{Instant, MemoryOptions, Policy, WorkerConfig};
use rxo_testkit::seg;

use crate::pausing::bulk;
use crate::world::{Event, SlowSink, World};

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[test]
fn frames_of_the_host_pass_as_they_are() {
    let world = World::new();
    let frames = [
        seg().partial().frame(),
        seg().seq(200).len(4344).already_aggregated(1448).frame(),
        seg().seq(4544).frame(),
        seg().seq(4644).frame(),
    ];
    for frame in &frames {
        world.at(Instant::ZERO, Event::FromHost(frame.clone()));
    }
    let ended = world.run(Policy::linux_gro());
    assert_eq!(ended.to_nic.len(), 4, "nothing is coalesced on the way to the nic");
    for (sent, frame) in ended.to_nic.iter().zip(&frames) {
        assert_eq!(sent.bytes, frame.bytes);
        assert_eq!((sent.offload.checksum, sent.offload.gso), (frame.checksum, frame.gso));
    }
    assert_eq!((ended.totals.engine.frames, ended.to_host.len()), (0, 0));
}

#[test]
fn super_packets_from_the_nic_pass_as_they_are_and_in_order() {
    let world = World::new();
    let large = seg().seq(200).len(4344).already_aggregated(1448).frame();
    let frames = [seg().frame(), large.clone(), seg().seq(4544).frame()];
    for frame in frames {
        world.at(Instant::ZERO, Event::FromNic(frame));
    }
    let ended = world.run(Policy::linux_gro());
    assert_eq!(ended.to_host.len(), 3);
    assert_eq!((&ended.to_host[1].bytes, ended.to_host[1].offload.gso), (&large.bytes, large.gso));
}

#[test]
fn directions_do_not_wait_for_each_other() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(1), 1_000, bulk);
    for index in 0..200 {
        let at = Instant::ZERO + micros(5) * index;
        world.at(at, Event::FromHost(seg().flow(9).seq(index).len(1).frame_at(at)));
    }
    let ended = world.run(Policy::linux_gro());
    assert_eq!((ended.totals.host_out.frames, ended.to_nic.len()), (1_000, 200));
    // The nic's bulk traffic makes the worker pause; the host's frames wait for one pause and one turn.
    for (index, sent) in ended.to_nic.iter().enumerate() {
        let waited = sent.sent_at.since(Instant::ZERO + micros(5) * index as u32);
        assert!(waited <= micros(130), "frame {index} waited {waited:?}");
    }
}

#[test]
fn a_direction_that_is_not_served_is_left_alone() {
    for (directions, to_host, to_nic) in [(Directions::ToHost, 1, 0), (Directions::ToNic, 0, 1)] {
        let world = World::new();
        world.at(Instant::ZERO, Event::FromNic(seg().frame()));
        world.at(Instant::ZERO, Event::FromHost(seg().frame()));
        let ended =
            world.run_with(WorkerConfig { directions, ..WorkerConfig::new(Policy::linux_gro()) });
        assert_eq!((ended.to_host.len(), ended.to_nic.len()), (to_host, to_nic));
    }
}

#[test]
fn nothing_is_lost_when_the_sink_is_slow() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(1), 5_000, bulk);
    let sink = SlowSink { time_per_packet: micros(70), ..SlowSink::new(&world) };
    let host = rxo::Duplex { source: world.from_host.source(), sink };
    let ended = world.run_into(host, WorkerConfig::new(Policy::linux_gro()));
    assert_eq!((ended.totals.nic_in.ring_drops, ended.totals.host_out.dropped), (0, 0));
    assert_eq!(ended.totals.host_out.frames, 5_000);
    let payload: usize = ended.to_host.iter().map(|sent| sent.bytes.len() - 54).sum();
    assert_eq!(payload, 5_000 * 1448);
}

#[test]
fn what_the_ring_has_no_room_for_is_counted() {
    let world = World::with(MemoryOptions { most_packets: 100, ..MemoryOptions::default() });
    world.arrive(Instant::ZERO, micros(0), 150, bulk);
    let ended = world.run(Policy::linux_gro());
    assert_eq!(ended.totals.nic_in.ring_drops, 50);
    assert_eq!(ended.totals.host_out.frames, 100);
}
