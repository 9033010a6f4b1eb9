//! The memory of connections that are not used any more.

use std::net::Shutdown;
use std::time::Duration;

use rxo_device::FrameSource as _;
use rxo_host::{Host, HostConfig, Readiness, SharedBytes, TcpListener, TcpStream};

use crate::counting::held_bytes;
use crate::world::{World, config, drain, fill, pattern};

const CONNECTIONS: i64 = 50;
/// The limit for the memory of a closed connection in bytes: the application holds none, and the table of
/// TIME-WAIT is allocated in advance.
const MOST_BYTES: i64 = 100;

/// The client closes first, so its connections stay in TIME-WAIT.
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

/// Opens `count` connections; each carries data in both directions, and the client closes first.
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

/// An application may keep the handles of closed connections; their buffers are freed nevertheless.
#[test]
fn a_closed_connection_gives_its_buffers_back() {
    let mut world = World::new();
    let all = world.server.counters().memory_left_bytes;
    let listener = world.listen(8);
    let (client, accepted) = world.connected(&listener);
    for (from, to) in [(&client, &accepted), (&accepted, &client)] {
        assert_eq!(fill(from, b"used"), 4);
        world.settle();
        assert_eq!(drain(to).unwrap().0, b"used");
    }
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

/// A long transfer lets its buffers grow, and 1,000 growing connections share the memory. Later connections
/// get the memory reserved for them, and more when buffers shrink. The limit holds at every step.
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

    // New connections use the last quarter, until grown buffers must shrink.
    let mut more = Vec::new();
    while world.client.counters().memory_left_bytes >= LIMIT / 5 {
        let (client, accepted) = world.connected(&listener);
        fill(&client, &data);
        fill(&accepted, &data);
        world.settle();
        more.push((client, accepted));
    }
    for _ in 0..200 {
        world.pass(Duration::from_millis(100));
    }
    let counters = world.client.counters();
    assert_eq!(counters.connections, 1_000 + more.len());
    assert!(counters.memory_left_bytes >= LIMIT / 4, "{} bytes left", counters.memory_left_bytes);
    drop((streams, more));
    world.pass(Duration::from_secs(200));
    assert_eq!(world.client.counters().memory_left_bytes, LIMIT);
    assert_eq!(world.server.counters().memory_left_bytes, LIMIT);
}

/// Creates a server with a hundred connections, and with memory for the data of only a few of them.
fn crowded() -> (World, Vec<(TcpStream, TcpStream)>) {
    let mut world = World::new();
    let config = HostConfig { memory_bytes: LITTLE_BYTES, ..config("10.0.0.2/24") };
    world.server = Host::new(world.there.source(), world.back.sink(), config).unwrap();
    let listener = world.listen(8);
    let ends = (0..100).map(|_| world.connected(&listener)).collect();
    (world, ends)
}

const LITTLE_BYTES: u64 = 2 << 20;

/// Writes all of `text` at the first of each pair of ends, and checks that it arrives at the second.
fn carry_all<'a>(
    world: &mut World,
    ends: impl Iterator<Item = (&'a TcpStream, &'a TcpStream)> + Clone,
    text: &[u8],
) {
    let mut carried: Vec<_> = ends.clone().map(|_| (0, Vec::new())).collect();
    for _ in 0..3_000 {
        for ((from, to), (sent, got)) in ends.clone().zip(&mut carried) {
            *sent += fill(from, &text[*sent..]);
            got.extend(drain(to).unwrap().0);
        }
        if carried.iter().all(|(_, got)| got.len() == text.len()) {
            break;
        }
        world.pass(Duration::from_millis(20));
    }
    for (sent, got) in &carried {
        assert!(got == text, "{} of {} bytes, {sent} sent", got.len(), text.len());
    }
}

/// The windows of all connections together exceed the memory. Data without memory is dropped, no window is
/// reduced, and once the application reads, everything arrives.
#[test]
fn windows_of_all_are_more_than_the_memory() {
    let (mut world, ends) = crowded();
    let (before, text) = (held_bytes(), pattern(30_000));
    let sent: Vec<_> = ends.iter().map(|(client, _)| fill(client, &text)).collect();
    assert!(sent.iter().all(|sent| *sent == text.len()));
    let at_clients = held_bytes() - before;
    world.pass(Duration::from_secs(3));
    let counters = world.server.counters();
    assert!(counters.tcp.texts_without_memory > 100, "{}", counters.tcp.texts_without_memory);
    let held = held_bytes() - before - at_clients;
    assert!(held < LITTLE_BYTES as i64, "{held} bytes");
    let mut got: Vec<_> = ends.iter().map(|(_, accepted)| drain(accepted).unwrap().0).collect();
    assert!(got.iter().all(|got| got.len() >= 1_000), "everybody gets on");
    for _ in 0..600 {
        world.pass(Duration::from_millis(100));
        for ((_, accepted), got) in ends.iter().zip(&mut got) {
            got.extend(drain(accepted).unwrap().0);
        }
    }
    assert!(got.iter().all(|got| *got == text));
    carry_all(&mut world, ends.iter().map(|(client, accepted)| (client, accepted)), &text);
}

/// Data after a gap does not take the little memory that the missing data needs.
#[test]
fn a_gap_is_filled_without_memory() {
    let (mut world, ends) = crowded();
    let (text, (last, others)) = (pattern(30_000), ends.split_last().unwrap());
    others.iter().for_each(|(client, _)| assert_eq!(fill(client, &text), text.len()));
    world.pass(Duration::from_secs(3));
    let (client, accepted) = last;
    let mut lost = Vec::new();
    assert_eq!(fill(client, &text[..500]), 500);
    world.client.turn(world.now).unwrap();
    world.there.source().receive(&mut lost, 64).unwrap();
    assert!(!lost.is_empty());
    assert_eq!(fill(client, &text[500..1_000]), 500);
    world.pass(Duration::from_secs(10));
    assert_eq!(drain(accepted).unwrap().0, text[..1_000]);
    assert!(world.server.counters().tcp.texts_without_memory > 0);
}

/// Writing waits for memory, except for a little data, and continues when there is memory.
#[test]
fn what_all_send_is_more_than_the_memory() {
    let (mut world, ends) = crowded();
    let (text, before) = (pattern(30_000), held_bytes());
    // Enough data to close the peers' windows.
    let sent: Vec<_> = ends.iter().map(|(_, accepted)| fill(accepted, &text)).collect();
    let held = held_bytes() - before;
    assert!(held < LITTLE_BYTES as i64, "{held} bytes");
    assert!(sent.contains(&text.len()) && sent.contains(&2_048), "{sent:?}");
    assert!(sent.iter().all(|sent| *sent >= 2_048), "everybody gets on: {sent:?}");
    world.pass(Duration::from_millis(100));
    for ((client, _), sent) in ends.iter().zip(&sent) {
        assert_eq!(drain(client).unwrap().0.len(), *sent);
    }
    carry_all(&mut world, ends.iter().map(|(client, accepted)| (accepted, client)), &text);
    assert_eq!(world.server.counters().tcp.texts_without_memory, 0);
    drop(ends);
    world.pass(Duration::from_secs(200));
    assert_eq!(world.server.counters().memory_left_bytes, LITTLE_BYTES);
}

/// Lends as much of `text` as fits. Returns the number of bytes.
fn lend(stream: &TcpStream, text: &[u8]) -> usize {
    let mut rest = SharedBytes::from(text.to_vec());
    while !rest.is_empty() && stream.write_shared(&mut rest).is_ok() {}
    text.len() - rest.len()
}

/// Writes the first bytes of `text`, and lends as much of the rest as fits. Returns the number of bytes of
/// both.
fn write_and_lend(stream: &TcpStream, text: &[u8]) -> usize {
    let (head, text) = text.split_at(text.len().min(100));
    let mut rest = SharedBytes::from(text.to_vec());
    stream.write_both(head, &mut rest).map_or(0, |taken| taken + lend(stream, &rest))
}

/// Lent data waits for memory like written data: all lent bytes without an ACK stay within the memory.
#[test]
fn what_all_lend_is_more_than_the_memory() {
    for lend in [lend, write_and_lend] {
        let (mut world, ends) = crowded();
        let text = pattern(30_000);
        let lent: Vec<_> = ends.iter().map(|(_, accepted)| lend(accepted, &text)).collect();
        let all: usize = lent.iter().sum();
        assert!(all < LITTLE_BYTES as usize, "{all} bytes");
        assert!(lent.contains(&text.len()) && lent.contains(&2_048), "{lent:?}");
        assert!(lent.iter().all(|lent| *lent >= 2_048), "everybody gets on: {lent:?}");
        let mut carried: Vec<_> = lent.iter().map(|lent| (*lent, Vec::new())).collect();
        for _ in 0..3_000 {
            world.pass(Duration::from_millis(20));
            for ((client, accepted), (lent, got)) in ends.iter().zip(&mut carried) {
                *lent += lend(accepted, &text[*lent..]);
                got.extend(drain(client).unwrap().0);
            }
        }
        assert!(carried.iter().all(|(_, got)| *got == text), "everybody gets all");
        drop(ends);
        world.pass(Duration::from_secs(200));
        assert_eq!(world.server.counters().memory_left_bytes, LITTLE_BYTES);
    }
}

/// A thread that waits for memory to send is woken when other connections return some.
#[test]
fn whoever_waits_for_memory_is_told() {
    let (mut world, ends) = crowded();
    let (text, readiness) = (pattern(30_000), Readiness::new());
    for (token, (_, accepted)) in ends.iter().enumerate() {
        readiness.watch(accepted, token as u64).unwrap();
        fill(accepted, &text);
        assert_eq!(fill(accepted, &text[..0]), 0);
    }
    let mut told = Vec::new();
    readiness.wait(&mut told, Some(Duration::ZERO));
    told.clear();
    let last = &ends[99].1;
    assert_eq!((fill(last, &text), lend(last, &text)), (0, 0), "no memory");
    // It is woken at once, by the returned memory alone: no time passes, and the client sends no ACK.
    ends[..99].iter().for_each(|(_, accepted)| accepted.abort());
    while world.server.poll_at().is_some_and(|at| at <= world.now)
        || !world.server.turn(world.now).unwrap().is_idle()
    {
        world.server.turn(world.now).unwrap();
    }
    readiness.wait(&mut told, Some(Duration::ZERO));
    assert!(told.contains(&99), "{told:?}");
    assert!(fill(last, &text) > 20_000);
}
