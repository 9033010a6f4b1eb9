//! The cost of idle connections.

use std::net::SocketAddr;
use std::time::Duration;

use rxo_host::{TcpListener, TcpStream};

use crate::counting::held_bytes;
use crate::world::{World, drain, fill, options, pattern};

/// Maximum memory of an idle connection, including its entry at the worker and the application's handle. The
/// ring of the fast path takes 256 bytes of this memory.
const MOST_BYTES: i64 = 3 << 10;

/// Creates hosts for `connections`, with the default memory and buffers.
fn world(connections: usize) -> World {
    World::with(options(), |config| config.sockets = connections)
}

/// Opens `connections`, a hundred at a time, to as many listeners as the number of local ports requires.
fn open(world: &mut World, connections: usize) -> (Vec<TcpListener>, Vec<[TcpStream; 2]>) {
    let (mut listeners, mut ends) = (Vec::new(), Vec::with_capacity(connections));
    while ends.len() < connections {
        if ends.len() % PORTS == 0 {
            let address = SocketAddr::from(([10, 0, 0, 2], 8_000 + listeners.len() as u16));
            let listener = world.at_server().listen(address, 2 * AT_ONCE).unwrap();
            listener.set_nonblocking(true).unwrap();
            listeners.push(listener);
        }
        let listener = listeners.last().unwrap();
        let address = listener.local_addr().unwrap();
        let count = AT_ONCE.min(connections - ends.len());
        let connect = |_| world.at_client().connect_nonblocking(address).unwrap();
        let streams: Vec<_> = (0..count).map(connect).collect();
        world.settle();
        for stream in streams {
            let (accepted, _) = listener.accept().unwrap();
            let both = [stream, accepted];
            both.iter().for_each(|end| end.set_nonblocking(true).unwrap());
            ends.push(both);
        }
        world.now = world.now + Duration::from_micros(100);
    }
    (listeners, ends)
}

/// The memory that both hosts allocate once while connections are busy. It is negligible beside the memory of
/// a hundred thousand connections.
const SHARED_BYTES: i64 = 4 << 10;

/// Number of connections opened at once.
const AT_ONCE: usize = 100;
/// Number of connections per listener.
const PORTS: usize = 16_000;

/// Returns the average memory of each end, once all connections are idle.
fn each_takes(world: &mut World, before: i64, connections: usize) -> i64 {
    world.pass(Duration::from_secs(3));
    (held_bytes() - before) / (2 * connections as i64)
}

#[test]
fn a_hundred_thousand_idle_connections_are_small() {
    const CONNECTIONS: usize = 100_000;
    let mut world = world(CONNECTIONS);
    let before = held_bytes();
    let (_listeners, ends) = open(&mut world, CONNECTIONS);
    let each = each_takes(&mut world, before, CONNECTIONS);
    println!("{each} bytes for each end of {CONNECTIONS} idle connections");
    assert_eq!(world.server.counters().connections, CONNECTIONS);
    assert!(each <= MOST_BYTES, "{each} bytes each");
    // Idle connections need no timers.
    assert_eq!((world.client.poll_at(), world.server.poll_at()), (None, None));
    drop(ends);
}

/// Connections that were busy are as small as others once they are idle: their buffers are freed, and
/// allocated again when needed.
#[test]
fn connections_that_were_busy_are_small_when_they_are_idle() {
    const CONNECTIONS: usize = 100;
    let mut world = world(CONNECTIONS);
    let before = held_bytes();
    let (_listeners, ends) = open(&mut world, CONNECTIONS);
    let (request, answer) = (pattern(300), pattern(60_000));
    for _ in 0..2 {
        for [client, accepted] in &ends {
            assert_eq!(fill(client, &request), request.len());
            world.settle();
            assert_eq!(drain(accepted).unwrap().0, request);
            assert_eq!(fill(accepted, &answer), answer.len());
            let mut got = Vec::new();
            while got.len() < answer.len() {
                world.pass(Duration::from_millis(1));
                got.extend(drain(client).unwrap().0);
            }
            assert_eq!(got, answer);
        }
        let each = each_takes(&mut world, before + SHARED_BYTES, CONNECTIONS);
        println!("{each} bytes for each end of {CONNECTIONS} that were busy");
        assert!(each <= MOST_BYTES, "{each} bytes each");
    }
}
