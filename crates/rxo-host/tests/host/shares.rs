//! With many connections, a round serves only a share of them, and none until all received frames are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::world::{World, fill, options, pattern};

#[test]
fn many_connections_are_served_in_shares_and_read_at_once() {
    const CONNECTIONS: usize = 100;
    let mut world = World::with(options(), |config| config.budget_frames = 64);
    let listener = world.listen(CONNECTIONS);
    let ends: Vec<_> = (0..CONNECTIONS).map(|_| world.connected(&listener)).collect();
    let got = Arc::new(AtomicUsize::new(0));
    for (_, accepted) in &ends {
        let got = Arc::clone(&got);
        accepted.read_with(move |text| {
            got.fetch_add(text.len(), Ordering::Relaxed);
        });
    }
    world.settle();

    let data = pattern(1_000);
    for (client, _) in &ends {
        assert_eq!(fill(client, &data), data.len());
    }
    while !world.client.turn(world.now).unwrap().is_idle() {}

    let mut turn = || world.server.turn(world.now).unwrap();
    let first = turn();
    assert_eq!((first.frames, first.served), (64, 0), "there may be more to receive");
    let second = turn();
    assert_eq!((second.frames, second.served), (36, 32));
    // Connections that wait to be served keep no frames of the device.
    assert_eq!(got.load(Ordering::Relaxed), CONNECTIONS * data.len());
    assert!(world.server.poll_at().is_some_and(|at| at <= world.now), "it must not sleep");
    let rest = [(); 3].map(|()| world.server.turn(world.now).unwrap().served);
    assert_eq!(rest, [32, 32, 4]);
    assert!(world.server.poll_at().is_none_or(|at| at > world.now));
}

/// The peer's shortest round trip is the round trip of the handshake, however many connections wait to be
/// served.
#[test]
fn a_handshake_does_not_wait_behind_other_connections() {
    const CONNECTIONS: usize = 100;
    let mut world = World::new();
    let listener = world.listen(CONNECTIONS);
    let ends: Vec<_> = (0..CONNECTIONS).map(|_| world.connected(&listener)).collect();
    let opening = world.at_client().connect_nonblocking(listener.local_addr().unwrap()).unwrap();
    world.client_alone();

    // The server's text for all others comes to the client before its SYN-ACK.
    let data = pattern(10_000);
    for (_, accepted) in &ends {
        assert_eq!(fill(accepted, &data), data.len());
    }
    while !world.server.turn(world.now).unwrap().is_idle() {}
    let turn = loop {
        let turn = world.client.turn(world.now).unwrap();
        if turn.served > 0 {
            break turn;
        }
    };
    assert_eq!(turn.served, 32, "a share of them");
    assert!(opening.is_connected().unwrap());
    while !world.server.turn(world.now).unwrap().is_idle() {}
    assert!(listener.accept().is_ok(), "its ACK was among the first");
}
