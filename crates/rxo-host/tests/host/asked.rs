//! Changes and queries while a host runs: the list of its connections, and its policy.

use std::collections::BTreeSet;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_host::{ConnectionView, HostError, TcpStream};
use rxo_tcp::State;

use crate::world::{MemoryHost, World, drain, fill, pattern};

/// Lists all connections in pages of `most` slots. `between` runs between two pages.
fn pages(
    world: &mut World,
    most: usize,
    mut between: impl FnMut(&mut World),
) -> Vec<ConnectionView> {
    let (mut all, mut from) = (Vec::new(), Some(0));
    while let Some(place) = from {
        let page = world.server.connections(place, most);
        from = page.next;
        let rows = page.look();
        assert!(rows.len() <= most);
        all.extend(rows);
        between(world);
    }
    all
}

fn peers(all: &[ConnectionView]) -> Vec<SocketAddr> {
    all.iter().map(|view| view.peer).collect()
}

#[test]
fn who_stays_is_listed_once_though_others_come_and_go() {
    let mut world = World::new();
    let listener = world.listen(64);
    let mut stay: Vec<_> = (0..20).map(|_| world.connected(&listener)).collect();
    let mut go: Vec<_> = (0..20).map(|_| world.connected(&listener)).collect();
    stay.extend((0..20).map(|_| world.connected(&listener)));
    let listed = pages(&mut world, 7, |world| {
        // One connection is closed, and another takes its slot.
        drop(go.pop());
        world.settle();
        go.insert(0, world.connected(&listener));
    });
    let listed = peers(&listed);
    for (client, _) in &stay {
        let local = client.local_addr().unwrap();
        assert_eq!(listed.iter().filter(|peer| **peer == local).count(), 1, "{local}");
    }
    let different: BTreeSet<_> = listed.iter().collect();
    assert_eq!(different.len(), listed.len(), "nobody is listed twice");
}

#[test]
fn what_is_listed_is_what_happened() {
    let mut world = World::new();
    assert!(pages(&mut world, 16, |_| {}).is_empty());
    let listener = world.listen(4);
    let (client, accepted) = world.connected(&listener);
    assert_eq!(fill(&client, &pattern(5_000)), 5_000);
    assert_eq!(fill(&accepted, &pattern(3_000)), 3_000);
    // The last segments wait for delayed ACKs.
    world.pass(Duration::from_millis(300));
    let view = pages(&mut world, 16, |_| {})[0];
    assert_eq!(
        (view.local, view.peer),
        (accepted.local_addr().unwrap(), client.local_addr().unwrap())
    );
    assert_eq!((view.state, view.unread_bytes, view.is_orphan), (State::Established, 5_000, false));
    assert_eq!((view.statistics.bytes_received, view.statistics.bytes_acked), (5_000, 3_000));
    // A FIN does not count as a byte of data.
    client.shutdown(Shutdown::Write).unwrap();
    drain(&accepted).unwrap();
    world.pass(Duration::from_millis(300));
    let view = pages(&mut world, 16, |_| {})[0];
    assert_eq!((view.state, view.statistics.bytes_received), (State::CloseWait, 5_000));
    assert_eq!(client.statistics().bytes_acked, 5_000);
}

/// Every policy of the papers, every kind of hold, and no coalescing.
const CHANGES: [(&str, &str); 6] = [
    ("remember", "end-of-poll"),
    ("none", "end-of-poll"),
    ("menon-2008", "polls:3"),
    ("linux-gro", "100us"),
    ("rsc2", "packets:5"),
    ("inet-lro", "auto"),
];

fn change(host: &mut MemoryHost, number: usize) {
    let (name, hold) = CHANGES[number % CHANGES.len()];
    let mut policy = Policy::by_name(name).unwrap();
    policy.set("hold", hold).unwrap();
    host.set_policy(policy).unwrap();
    assert_eq!(host.policy(), policy);
}

#[test]
fn a_host_whose_policy_changes_every_turn_loses_nothing() {
    let mut world = World::new();
    let listener = world.listen(4);
    let pairs: Vec<_> = (0..3).map(|_| world.connected(&listener)).collect();
    let data = pattern(600_000);
    let mut sent = [0; 3];
    let mut got: [Vec<u8>; 3] = Default::default();
    let mut turns = 0;
    while got.iter().any(|got| got.len() < data.len()) {
        for (n, (client, accepted)) in pairs.iter().enumerate() {
            sent[n] += fill(client, &data[sent[n]..]);
            got[n].extend(drain(accepted).unwrap().0);
        }
        change(&mut world.server, turns);
        change(&mut world.client, turns + 3);
        turns += 1;
        world.client.turn(world.now).unwrap();
        world.server.turn(world.now).unwrap();
        world.pass(Duration::from_micros(200));
        assert!(turns < 100_000, "it stands still");
    }
    assert!(got.iter().all(|got| *got == data));
    let counters = world.server.counters();
    assert_eq!((counters.tcp.backlog_drops, counters.tcp.resets), (0, 0));
    let resent = |stream: &TcpStream| stream.statistics().recovery.resent_segments;
    assert!(pairs.iter().all(|(client, _)| resent(client) == 0), "nothing was sent twice");
}

#[test]
fn an_invalid_policy_changes_nothing() {
    let mut world = World::new();
    let before = world.server.policy();
    let wrong = Policy { flows: 0, ..Policy::remember() };
    assert!(matches!(world.server.set_policy(wrong), Err(HostError::Engine(_))));
    world.settle();
    assert_eq!(world.server.policy(), before);
}
