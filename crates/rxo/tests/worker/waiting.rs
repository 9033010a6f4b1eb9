//! Tests that deadlines, reports and the end of a run are on time.

use std::time::Duration;

use rxo::coalesce::Hold;
use rxo::{Instant, Policy, WorkerConfig};

use crate::pausing::bulk;
use crate::world::{Event, TURN, World};

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn held_within(time: Duration) -> Policy {
    Policy { hold: Hold::Within(time), ..Policy::linux_gro() }
}

#[test]
fn what_is_held_is_delivered_at_its_deadline() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(1), 3, bulk);
    let ended = world.run(held_within(micros(500)));
    assert_eq!(ended.to_host.len(), 1);
    assert_eq!(ended.to_host[0].frames, 3);
    let held = ended.to_host[0].sent_at.since(Instant::ZERO);
    assert!((micros(500)..=micros(500) + 2 * TURN).contains(&held), "{held:?}");
}

#[test]
fn a_deadline_ends_a_pause() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(0), 20, bulk);
    let ended = world.run(held_within(micros(60)));
    let held = ended.to_host[0].sent_at.since(Instant::ZERO);
    assert!((micros(60)..=micros(60) + 2 * TURN).contains(&held), "{held:?}");
}

#[test]
fn a_deadline_is_kept_while_other_frames_come() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(0), 3, bulk);
    world.arrive(Instant::ZERO, micros(45), 20, |index, at| {
        rxo_testkit::seg().flow(7).seq(index).len(1).psh().frame_at(at)
    });
    let ended = world.run(held_within(micros(200)));
    let first = ended.to_host.iter().find(|sent| sent.frames == 3).unwrap();
    let held = first.sent_at.since(Instant::ZERO);
    assert!((micros(200)..=micros(200) + 3 * TURN).contains(&held), "{held:?}");
}

#[test]
fn delayed_aggregation_counts_only_polls_with_frames() {
    let world = World::new();
    // A single segment would be sent at once.
    for (at, index) in [(0, 0), (0, 1), (2_000, 2)] {
        world.at(Instant::from_micros(at), Event::FromNic(bulk(index, Instant::from_micros(at))));
    }
    let policy = Policy { max_hold: micros(50_000), ..Policy::xen_delayed() };
    let ended = world.run(policy);
    assert_eq!(ended.to_host.len(), 1, "all are delivered together, at the second poll");
    let waited = ended.to_host[0].sent_at.since(Instant::from_micros(2_000));
    assert!(waited <= 2 * TURN, "{waited:?}");
}

#[test]
fn a_stop_flushes_what_is_held() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(0), 5, bulk);
    world.at(Instant::from_micros(300), Event::Stop);
    let ended = world.run(held_within(micros(50_000)));
    assert!(ended.result.is_ok());
    assert_eq!(ended.to_host.len(), 1);
    assert_eq!(ended.to_host[0].frames, 5);
    assert!(ended.totals.elapsed < micros(500), "{:?}", ended.totals.elapsed);
}

#[test]
fn a_stop_carries_over_what_has_arrived() {
    let world = World::new();
    world.at(Instant::ZERO, Event::Stop);
    world.arrive(Instant::ZERO, micros(0), 1_000, bulk);
    world.at(Instant::ZERO, Event::FromHost(bulk(0, Instant::ZERO)));
    let ended = world.run(Policy::linux_gro());
    assert_eq!((ended.totals.host_out.frames, ended.to_nic.len()), (1_000, 1));
}

#[test]
fn a_link_that_never_falls_silent_does_not_keep_the_worker() {
    let world = World::new();
    // More frames arrive than all last rounds can carry, and there is always another one waiting.
    world.arrive(Instant::ZERO, Duration::from_nanos(40), 60_000, bulk);
    world.at(Instant::from_micros(100), Event::Stop);
    let ended = world.run(Policy::linux_gro());
    assert!(ended.result.is_ok());
    let frames = ended.totals.host_out.frames;
    assert!((8_000..30_000).contains(&frames), "{frames} frames");
}

#[test]
fn reports_come_once_in_an_interval() {
    let world = World::new();
    world.arrive(Instant::ZERO, micros(100), 100, bulk);
    let config = WorkerConfig {
        report_every: Some(micros(1_000)),
        ..WorkerConfig::new(Policy::linux_gro())
    };
    world.at(Instant::from_micros(10_500), Event::Stop);
    let ended = world.run_with(config);
    assert_eq!(ended.reports.len(), 10);
    for (number, report) in ended.reports.iter().enumerate() {
        let due = micros(1_000) * (number as u32 + 1);
        assert!((due..=due + 2 * TURN).contains(&report.elapsed), "{:?}", report.elapsed);
        assert_eq!(report.nic_in.frames, report.engine.frames);
        assert!(!report.cpu.is_zero() && report.cpu < report.elapsed, "{:?}", report.cpu);
    }
    assert_eq!(ended.totals.nic_in.frames, 100);
}
