//! Tests that bulk traffic gets full batches, and that requests and answers are not delayed by pauses of the
//! worker.

use std::time::Duration;

use rxo::worker::Pause;
use rxo::{Frame, Instant, Policy, WorkerConfig};
use rxo_testkit::seg;

use crate::world::{Rest, TURN, World};

const SEGMENT_BYTES: u32 = 1448;

/// Creates the `index`-th segment of a bulk flow.
pub(crate) fn bulk(index: u32, at: Instant) -> Frame<Vec<u8>> {
    seg().seq(100 + index * SEGMENT_BYTES).len(SEGMENT_BYTES as usize).frame_at(at)
}

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn pauses(rests: &[Rest]) -> usize {
    rests.iter().filter(|rest| matches!(rest, Rest::Pause(_))).count()
}

#[test]
fn bulk_gets_full_batches() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(1), 2_000, bulk);
    let ended = world.run(Policy::linux_gro());
    // The frames of 110 µs form two aggregates of 44 and 45 segments and a remainder.
    assert!((15..=20).contains(&pauses(&ended.rests)), "{:?}", ended.rests);
    assert_eq!(ended.totals.host_out.frames, 2_000);
    assert!(ended.to_host.len() < 70, "{} deliveries", ended.to_host.len());
}

#[test]
fn without_a_pause_batches_stay_small() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(1), 2_000, bulk);
    let pause = Pause { time: Duration::ZERO, ..Pause::default() };
    let ended = world.run_with(WorkerConfig { pause, ..WorkerConfig::new(Policy::linux_gro()) });
    assert_eq!(pauses(&ended.rests), 0);
    assert!(ended.to_host.len() > 150, "{} deliveries", ended.to_host.len());
}

#[test]
fn request_and_response_is_never_paused() {
    let world = World::new();
    let apart = micros(35);
    world.arrive(Instant::ZERO, apart, 500, |index, at| {
        seg().seq(100 + index).len(1).psh().frame_at(at)
    });
    let ended = world.run(Policy::linux_gro());
    assert_eq!(pauses(&ended.rests), 0);
    assert_eq!(ended.to_host.len(), 500);
    for (index, sent) in ended.to_host.iter().enumerate() {
        let waited = sent.sent_at.since(Instant::ZERO + apart * index as u32);
        assert!(waited <= 2 * TURN, "frame {index} waited {waited:?}");
    }
}

#[test]
fn after_bulk_ends_nothing_waits_longer_than_one_pause() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(1), 300, bulk);
    let last_at = Instant::ZERO + micros(299);
    let ended = world.run(Policy::linux_gro());
    let last = ended.to_host.last().unwrap();
    assert!(last.sent_at.since(last_at) <= micros(100) + 2 * TURN, "{:?}", last.sent_at);
}
