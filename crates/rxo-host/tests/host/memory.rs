//! What connections keep when nobody uses them any more.

use std::net::Shutdown;
use std::time::Duration;

use rxo_host::TcpListener;

use crate::counting::held_bytes;
use crate::world::{World, drain, fill, pattern};

const CONNECTIONS: i64 = 50;
/// What the application keeps: nothing. The table of those in TIME-WAIT is the host's from the start.
const MOST_BYTES: i64 = 100;

/// The client closes first: its ends stay for two segment lifetimes.
#[test]
fn a_connection_in_time_wait_is_small() {
    let mut world = World::new();
    let listener = world.listen(8);
    visits(&mut world, &listener, CONNECTIONS);
    let before = held_bytes();
    visits(&mut world, &listener, CONNECTIONS);
    assert_eq!(world.client.counters().time_waits, 2 * CONNECTIONS as usize);
    assert_eq!(world.client.counters().connections, 0);
    assert_eq!(world.server.counters().connections, 0);
    let each = (held_bytes() - before) / CONNECTIONS;
    assert!(each <= MOST_BYTES, "{each} bytes each");
    world.pass(Duration::from_secs(61));
    assert_eq!(world.client.counters().time_waits, 0);
}

/// This many connections; each carries data both ways, and the client closes first.
fn visits(world: &mut World, listener: &TcpListener, count: i64) {
    let data = pattern(20_000);
    for _ in 0..count {
        let (client, accepted) = world.connected(listener);
        for (from, to) in [(&client, &accepted), (&accepted, &client)] {
            assert_eq!(fill(from, &data), data.len());
            world.pass(Duration::from_millis(100));
            assert_eq!(drain(to).unwrap().0, data);
        }
        drop(client);
        world.settle();
        drop(accepted);
        world.settle();
    }
}

/// An application may keep the handles of connections that are over: their buffers are given back all the same.
#[test]
fn a_closed_connection_gives_its_buffers_back() {
    let mut world = World::new();
    let all = world.server.counters().memory_left_bytes;
    let listener = world.listen(8);
    let (client, accepted) = world.connected(&listener);
    let open = all - world.server.counters().memory_left_bytes;
    client.shutdown(Shutdown::Both).unwrap();
    world.settle();
    accepted.shutdown(Shutdown::Both).unwrap();
    world.settle();
    assert_eq!(world.server.counters().connections, 0);
    let closed = all - world.server.counters().memory_left_bytes;
    assert!(closed + 3 * (64 << 10) <= open, "{closed} of {open} bytes");
    drop(accepted);
    world.settle();
    assert_eq!(world.server.counters().memory_left_bytes, all);
}

/// A transfer that lasts lets its buffers grow; 1,000 that want to grow share what there is; those that come
/// later get the memory that growth has left, and more when buffers shrink. The limit holds at every step.
#[test]
fn a_thousand_connections_grow_within_the_limit() {
    const LIMIT: u64 = 512 << 20;
    let mut world = World::with(crate::world::options(), |config| config.memory_bytes = LIMIT);
    let listener = world.listen(2_000);
    let streams: Vec<_> = (0..1_000).map(|_| world.connected(&listener)).collect();
    let opened = LIMIT - world.server.counters().memory_left_bytes;
    let data = pattern(128 << 10);
    for _ in 0..5 {
        for (client, accepted) in &streams {
            fill(client, &data);
            world.settle();
            drain(accepted).unwrap();
        }
        world.pass(Duration::from_millis(2));
        let left = world.client.counters().memory_left_bytes;
        assert!(left >= LIMIT / 4, "{left} bytes left");
    }
    let grown = LIMIT - world.client.counters().memory_left_bytes;
    assert!(grown > opened + (LIMIT - opened) / 4, "{grown} of {opened} bytes at first");

    // New connections take of the last quarter, until those that have grown must shrink.
    let more: Vec<_> = (0..500).map(|_| world.connected(&listener)).collect();
    for _ in 0..200 {
        world.pass(Duration::from_millis(100));
    }
    let counters = world.client.counters();
    assert_eq!(counters.connections, 1_500);
    assert!(counters.memory_left_bytes >= LIMIT / 8, "{} bytes left", counters.memory_left_bytes);
    drop((streams, more));
    world.pass(Duration::from_secs(200));
    assert_eq!(world.client.counters().memory_left_bytes, LIMIT);
    assert_eq!(world.server.counters().memory_left_bytes, LIMIT);
}
