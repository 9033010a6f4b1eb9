//! What connections keep when nobody uses them any more.

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
