//! Crowds of unhelpful clients: they never read, never close, and answer every probe.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use rxo_frame::Frame;
use rxo_host::TcpStream;
use rxo_wire::TcpFlags;

use crate::counting::held_bytes;
use crate::listening::spoofed;
use crate::world::{World, drain, fill, options, pattern, server};

/// Sends `count` SYNs from hosts that do not exist, 500 per round.
fn flood_with_syns(world: &mut World, count: u32) {
    for n in 0..count {
        let (host, port) = (77 + n / 60_000 % 100, 1_024 + (n % 60_000) as u16);
        let syn = spoofed(host, port, TcpFlags::SYN, n, 0);
        world.there.push(&Frame::new(syn, world.now));
        if n % 500 == 499 {
            world.settle();
            world.now = world.now + Duration::from_micros(100);
        }
    }
}

/// Creates clients that never read, and the server's ends of their connections, which have written as much as
/// they could.
fn silent_clients(world: &mut World, count: usize) -> (Vec<TcpStream>, Vec<TcpStream>) {
    let listener = world.listen(16);
    let data = pattern(1_000_000);
    let mut ends = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (client, accepted) = world.connected(&listener);
        for _ in 0..4 {
            fill(&accepted, &data);
            world.settle();
        }
        ends.0.push(client);
        ends.1.push(accepted);
    }
    ends
}

/// The number of orphans is bounded even if their peers answer every probe but accept no data: the orphans
/// whose peers accepted nothing for the longest time are reset.
#[test]
fn connections_that_nobody_has_any_more_are_so_many_at_most() {
    const MOST: usize = 16;
    let mut world = World::with(options(), |config| config.orphans = MOST);
    let (clients, mut accepted) = silent_clients(&mut world, 200);
    let left = world.server.counters().memory_left_bytes;
    let last = accepted.pop();
    drop(accepted);
    world.pass(Duration::from_secs(59));
    assert_eq!(world.server.counters().orphans, 199, "they may only be slow");
    world.pass(Duration::from_secs(2));
    drop(last);
    world.settle();
    let counters = world.server.counters();
    assert_eq!((counters.connections, counters.orphans), (MOST, MOST));
    assert_eq!(counters.tcp.orphans_reset, 200 - MOST as u64);
    assert!(counters.memory_left_bytes > left);
    // The oldest were reset; the others still wait with their data.
    let told = |client: &&TcpStream| client.take_error().unwrap().is_some();
    assert_eq!(clients.iter().filter(told).count(), 200 - MOST);
    assert!(clients[200 - MOST..].iter().all(|client| client.take_error().unwrap().is_none()));
    for client in &clients[200 - MOST..] {
        assert!(!drain(client).unwrap().0.is_empty());
    }
}

/// No peer is reset while it reads, however slowly it reads and however many peers there are. The limit is
/// for peers that do not read.
#[test]
fn slow_readers_get_everything_however_many_they_are() {
    const READERS: usize = 64;
    let mut world = World::with(options(), |config| config.orphans = 16);
    let listener = world.listen(16);
    let data = pattern(300_000);
    // Writes some data to a new client and drops the server's end. Returns the client and the number of
    // bytes.
    let dropped = |world: &mut World| {
        let (client, accepted) = world.connected(&listener);
        let mut written = 0;
        for _ in 0..8 {
            written += fill(&accepted, &data[written..]);
            world.settle();
        }
        (client, written)
    };
    let mut readers: Vec<_> = (0..READERS).map(|_| (dropped(&mut world), 0)).collect();
    let (mut silent, begun) = (Vec::new(), world.now);
    while readers.iter().any(|((_, written), heard)| heard < written) {
        for ((client, written), heard) in &mut readers {
            // Does not read the end of the stream.
            let most = (*written - *heard).min(1_000);
            *heard += (&*client).read(&mut vec![0; most]).unwrap();
        }
        if (world.now - begun).as_secs().is_multiple_of(5) {
            silent.push(dropped(&mut world));
        }
        world.pass(Duration::from_secs(1));
    }
    let lasted = world.now - begun;
    assert!(lasted > rxo_tcp::Config::default().orphan_timeout, "{lasted:?}");
    let counters = world.server.counters();
    let reset = counters.tcp.orphans_reset as usize;
    assert!(reset > silent.len() / 3 && reset < silent.len(), "{reset} of {}", silent.len());
}

/// Ten thousand connections with a closed window stay within the memory together, with the default buffers
/// and memory. Another client is served, even during a flood of SYNs. Orphans wait no longer than configured.
#[test]
fn ten_thousand_that_never_read_harm_nobody_else() {
    const COUNT: usize = 10_000;
    let mut world = World::with(options(), |_| {});
    let (free, before) = (world.server.counters().memory_left_bytes, held_bytes());
    let (clients, accepted) = silent_clients(&mut world, COUNT);
    assert_eq!(world.server.counters().connections, COUNT);
    let held = held_bytes() - before;
    println!("{} bytes for both ends of each", held / COUNT as i64);
    assert!(held < 2 * free as i64, "{held} bytes of two hosts with {free} each");
    assert!(held > (128 << 10) * COUNT as i64, "{held} bytes: they hold nothing");

    let listener = world.listen(1);
    flood_with_syns(&mut world, 50_000);
    let counters = world.server.counters();
    assert_eq!(counters.connections, COUNT + 1, "and one that is half open");
    assert!(counters.tcp.cookies_sent > 40_000, "{}", counters.tcp.cookies_sent);
    assert!(held_bytes() - before < held + (1 << 20), "a flood takes no memory");
    let (other, its_end) = world.connected(&listener);
    (&its_end).write_all(b"served").unwrap();
    world.settle();
    assert_eq!(drain(&other).unwrap().0, b"served");

    drop(accepted);
    world.settle();
    let counters = world.server.counters();
    assert_eq!((counters.orphans, counters.tcp.orphans_reset), (COUNT, 0), "they may only be slow");
    world.pass(rxo_tcp::Config::default().orphan_timeout + Duration::from_secs(1));
    drop((listener, other, its_end));
    world.pass(Duration::from_secs(1));
    assert!(clients.iter().all(|client| client.take_error().unwrap().is_some()), "they are told");
    let counters = world.server.counters();
    assert_eq!((counters.connections, counters.memory_left_bytes), (0, free));
}

/// After `orphan_timeout` nothing is left of an orphan, not a byte, although its peer answers every probe of
/// the closed window.
#[test]
fn what_never_ends_is_ended() {
    const COUNT: usize = 500;
    let mut world = World::new();
    let before = world.server.counters().memory_left_bytes;
    let (clients, accepted) = silent_clients(&mut world, COUNT);
    let held = held_bytes();
    drop(accepted);
    world.settle();
    let timeout = rxo_tcp::Config::default().orphan_timeout;
    world.pass(timeout.saturating_sub(Duration::from_secs(1)));
    assert_eq!(world.server.counters().orphans, COUNT, "they are there as long as they may be");
    world.pass(Duration::from_secs(2));
    let counters = world.server.counters();
    assert_eq!((counters.connections, counters.orphans, counters.timers), (0, 0, 0));
    assert_eq!(counters.memory_left_bytes, before);
    assert!(clients.iter().all(|client| client.take_error().unwrap().is_some()), "they are told");
    // Data that the clients have received and not read is freed when they are dropped.
    drop(clients);
    world.settle();
    let freed = held - held_bytes();
    assert!(freed > 100_000 * COUNT as i64, "{freed} bytes");
}

/// The memory of all connections is bounded, however many there are and whatever they do.
#[test]
fn the_memory_of_all_connections_is_bounded() {
    const MEMORY_BYTES: u64 = 16 << 20;
    let mut world = World::with(options(), |config| config.memory_bytes = MEMORY_BYTES);
    let listener = world.listen(16);
    let (data, mut ends) = (pattern(1_000_000), Vec::with_capacity(1_000));
    let before = held_bytes();
    loop {
        let stream = match world.at_client().connect_nonblocking(server()) {
            Ok(stream) => stream,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::QuotaExceeded, "{error}");
                break;
            }
        };
        stream.set_nonblocking(true).unwrap();
        world.settle();
        let Ok((accepted, _)) = listener.accept() else { break };
        accepted.set_nonblocking(true).unwrap();
        // No end reads, so both directions hold as much as they can.
        for _ in 0..4 {
            fill(&stream, &data);
            fill(&accepted, &data);
            world.settle();
        }
        ends.push((stream, accepted));
    }
    assert!(ends.len() > 60, "{} connections", ends.len());
    let held = (held_bytes() - before) as u64;
    assert!(held < 2 * MEMORY_BYTES, "{held} bytes of two hosts with {MEMORY_BYTES} each");
    assert!(held > MEMORY_BYTES / 2, "{held} bytes: the bound is far from what is held");
    // Every connection still delivers its data, with the buffers that it has.
    for (stream, accepted) in &ends {
        let mut bytes = [0, 0];
        for _ in 0..20 {
            bytes[0] += drain(accepted).unwrap().0.len();
            bytes[1] += drain(stream).unwrap().0.len();
            world.pass(Duration::from_millis(1));
        }
        assert!(bytes.iter().all(|bytes| *bytes >= 32 << 10), "{bytes:?}");
    }
    drop(ends);
    world.pass(Duration::from_secs(400));
    for host in [&mut world.client, &mut world.server] {
        let counters = host.counters();
        assert_eq!((counters.connections, counters.memory_left_bytes), (0, MEMORY_BYTES));
    }
}

/// A host without memory for another connection drops SYNs, and answers again when there is memory.
#[test]
fn a_syn_waits_for_memory() {
    let mut world = World::new();
    let mut config = crate::world::config("10.0.0.2/24");
    config.memory_bytes = 1 << 20;
    world.server = rxo_host::Host::new(world.there.source(), world.back.sink(), config).unwrap();
    let listener = world.listen(64);
    let (mut held, mut silent) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let stream = world.at_client().connect_nonblocking(server()).unwrap();
        world.settle();
        if let Ok((accepted, _)) = listener.accept() {
            // Uses up the connection's memory, because no end reads.
            accepted.set_nonblocking(true).unwrap();
            fill(&accepted, &pattern(100_000));
            fill(&stream, &pattern(100_000));
            world.settle();
            silent.push(accepted);
        }
        held.push(stream);
    }
    let counters = world.server.counters();
    assert!((1..20).contains(&counters.tcp.syns_dropped), "{}", counters.tcp.syns_dropped);
    assert_eq!(counters.tcp.syns_without_memory, counters.tcp.syns_dropped);
    silent.iter().for_each(TcpStream::abort);
    world.pass(Duration::from_secs(4));
    let open = held.iter().filter(|stream| stream.is_connected().is_ok_and(|it| it)).count();
    assert!(open > 0);
    let mut last = held.last().unwrap();
    assert!(last.write(b"x").is_ok());
}
