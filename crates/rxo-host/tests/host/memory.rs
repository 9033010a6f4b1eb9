//! What connections keep when nobody uses them any more.

use std::time::Duration;

use crate::counting::held_bytes;
use crate::world::{World, drain, fill, pattern};

const CONNECTIONS: i64 = 50;
/// A cell, its place, its timer, the acknowledgements it may owe.
const MOST_BYTES: i64 = 4_096;

/// The client closes first: its ends stay for two segment lifetimes.
#[test]
fn a_connection_in_time_wait_is_small() {
    let mut world = World::new();
    let listener = world.listen(8);
    let data = pattern(20_000);
    let before = held_bytes();
    for _ in 0..CONNECTIONS {
        let (client, accepted) = world.connected(&listener);
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
    assert_eq!(world.client.counters().connections, CONNECTIONS as usize);
    assert_eq!(world.server.counters().connections, 0);
    let each = (held_bytes() - before) / CONNECTIONS;
    assert!(each <= MOST_BYTES, "{each} bytes each");
    world.pass(Duration::from_secs(61));
    assert_eq!(world.client.counters().connections, 0);
}
