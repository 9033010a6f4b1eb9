//! The windows in inserted ACKs.

use crate::world::{FULL, Sent, World, data, host};

/// Creates a world whose SYNs announced this window shift of the host.
fn scaled(shift: u8) -> World {
    let mut world = World::new(2);
    world.give(data(0, 0, 1).syn().no_ack().window_scale(3));
    let syn = host(1).syn().window_scale(shift);
    world.send(syn);
    world.send(host(1).window(500));
    world
}

fn edges(sent: &Sent, shift: u8) -> Vec<u32> {
    sent.iter().map(|(ack, window, _)| ack + (u32::from(*window) << shift)).collect()
}

#[test]
fn a_constant_window_is_repeated() {
    let mut world = scaled(7);
    world.aggregate(1, 6 * FULL, 1);
    let sent = world.send(host(1 + 6 * FULL).window(500));
    assert_eq!(sent.iter().map(|(_, window, _)| *window).collect::<Vec<_>>(), [500; 3]);
}

#[test]
fn a_host_that_reads_nothing_takes_no_promise_back() {
    for shift in [0, 3, 7] {
        let mut world = scaled(shift);
        let promised = 1 + (500_u32 << shift);
        let bytes = (promised - 1).min(6 * FULL) / FULL * FULL;
        world.aggregate(1, bytes, 1);
        let left = ((promised - 1 - bytes) >> shift) as u16;
        let sent = world.send(host(1 + bytes).window(left));
        for edge in edges(&sent, shift) {
            assert!(edge <= promised, "{edge} beyond {promised} at {shift}");
            assert!(edge + (1 << shift) > promised, "{edge} behind {promised} at {shift}");
        }
    }
}

#[test]
fn without_both_syns_the_window_is_the_hosts() {
    let mut world = World::at(2, 1);
    world.aggregate(1, 6 * FULL, 1);
    let sent = world.send(host(1 + 6 * FULL).window(400));
    assert_eq!(sent.iter().map(|(_, window, _)| *window).collect::<Vec<_>>(), [400; 3]);
}

#[test]
fn a_peer_that_cannot_scale_is_promised_unscaled_windows() {
    let mut world = World::new(2);
    world.give(data(0, 0, 1).syn().no_ack());
    world.send(host(1).syn().window_scale(7).window(60_000));
    world.send(host(1).window(60_000));
    world.aggregate(1, 6 * FULL, 1);
    let sent = world.send(host(1 + 6 * FULL).window(60_000 - 6 * FULL as u16));
    assert_eq!(edges(&sent, 0), [60_001; 3]);
}
