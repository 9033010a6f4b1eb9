//! Tests that a device that fails ends the loop with its error, and that frames that can still be delivered
//! are delivered.

use std::time::Duration;

use rxo::coalesce::Hold;
use rxo::{DeviceError, Instant, Policy};

use crate::pausing::bulk;
use crate::world::{Event, World};

fn long_held() -> Policy {
    Policy { hold: Hold::Within(Duration::from_millis(50)), ..Policy::linux_gro() }
}

fn five_frames_then(event: Event) -> World {
    let world = World::new();
    world.arrive(Instant::ZERO, Duration::ZERO, 5, bulk);
    world.at(Instant::from_micros(300), event);
    world
}

#[test]
fn a_nic_that_vanishes_ends_the_loop_after_a_flush() {
    let ended = five_frames_then(Event::NicGone).run(long_held());
    assert!(matches!(ended.result, Err(DeviceError::Gone(_))), "{:?}", ended.result);
    assert_eq!(ended.to_host.len(), 1);
    assert_eq!(ended.to_host[0].frames, 5);
}

#[test]
fn what_arrived_before_the_nic_vanished_is_delivered() {
    let world = World::new();
    world.arrive(Instant::from_micros(300), Duration::ZERO, 1_000, bulk);
    world.at(Instant::from_micros(300), Event::NicGone);
    let ended = world.run(Policy::linux_gro());
    assert!(matches!(ended.result, Err(DeviceError::Gone(_))), "{:?}", ended.result);
    assert_eq!(ended.totals.host_out.frames, 1_000);
}

#[test]
fn a_host_that_vanishes_ends_the_loop_and_what_was_held_is_counted() {
    let ended = five_frames_then(Event::HostGone).run(long_held());
    assert!(matches!(ended.result, Err(DeviceError::Gone(_))), "{:?}", ended.result);
    assert_eq!((ended.totals.host_out.frames, ended.totals.host_out.dropped), (0, 1));
}

#[test]
fn the_other_direction_is_served_in_the_turn_of_the_failure() {
    let world = World::new();
    world.at(Instant::from_micros(300), Event::NicGone);
    world.at(Instant::from_micros(300), Event::FromHost(bulk(0, Instant::ZERO)));
    let ended = world.run(Policy::linux_gro());
    assert!(ended.result.is_err());
    let out = ended.totals.nic_out;
    assert_eq!((ended.totals.host_in.frames, out.frames, out.dropped), (1, 0, 1));
}
