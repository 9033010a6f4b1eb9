//! Connections in TIME-WAIT: their memory, their duration and their answers.

use std::io::ErrorKind;
use std::time::Duration;

use rxo_device::MemoryLink;
use rxo_frame::Frame;
use rxo_host::{Host, TcpListener};
use rxo_wire::{SeqNumber, TcpFlags, Transport, parse_ip};

use crate::counting::held_bytes;
use crate::listening::spoofed;
use crate::world::{World, config, drain, fill, options, server};

/// The server's answers to a packet: flags, sequence number and ACK number.
fn answers(world: &mut World, packet: &[u8]) -> Vec<(TcpFlags, SeqNumber, SeqNumber)> {
    world.there.push(&Frame::new(packet, world.now));
    while !world.server.turn(world.now).unwrap().is_idle() {}
    let answer = |bytes: &[u8]| match parse_ip(bytes).unwrap().transport {
        Transport::Tcp(tcp) => (tcp.flags, tcp.seq, tcp.ack),
        other => panic!("{other:?}"),
    };
    world.back.take_all().iter().map(|sent| answer(&sent.bytes)).collect()
}

/// Simulates the visit of a peer whose connection the server closes first. Returns RCV.NXT and SND.NXT of the
/// server.
fn visit(world: &mut World, listener: &TcpListener, port: u16, seq: u32) -> (SeqNumber, SeqNumber) {
    let of = |flags, seq: SeqNumber, ack: SeqNumber| spoofed(1, port, flags, seq.0, ack.0);
    let syn = of(TcpFlags::SYN, SeqNumber(seq), SeqNumber(0));
    let (flags, iss, _) = answers(world, &syn)[0];
    assert_eq!(flags, TcpFlags::SYN | TcpFlags::ACK);
    let mine = SeqNumber(seq) + 1;
    answers(world, &of(TcpFlags::ACK, mine, iss + 1));
    let (accepted, _) = listener.accept().unwrap();
    drop(accepted);
    let fin = answers(world, &of(TcpFlags::ACK, mine, iss + 1));
    assert!(fin.iter().any(|(flags, ..)| flags.contains(TcpFlags::FIN)), "{fin:?}");
    let acked = answers(world, &of(TcpFlags::FIN | TcpFlags::ACK, mine, iss + 2));
    assert_eq!(acked, [(TcpFlags::ACK, iss + 2, mine + 1)]);
    (mine + 1, iss + 2)
}

fn counts(world: &mut World) -> (usize, usize) {
    let counters = world.server.counters();
    (counters.connections, counters.time_waits)
}

/// More visits than the limit of connections take place while every earlier visit is still in TIME-WAIT.
#[test]
fn time_wait_takes_no_socket() {
    let mut world = World::with(options(), |config| config.sockets = 4);
    let listener = world.listen(4);
    for port in 0..500 {
        visit(&mut world, &listener, 2_000 + port, 77);
    }
    assert_eq!(counts(&mut world), (0, 500));
    assert_eq!(world.server.counters().tcp.syns_dropped, 0);
    world.pass(Duration::from_secs(59));
    assert_eq!(counts(&mut world), (0, 500));
    world.pass(Duration::from_secs(2));
    assert_eq!(counts(&mut world), (0, 0));
    assert_eq!(world.server.poll_at(), None);
}

#[test]
fn the_oldest_gives_way() {
    let mut world = World::with(options(), |config| config.time_waits = 10);
    let listener = world.listen(4);
    let mut ends = Vec::new();
    for port in 0..30 {
        ends.push(visit(&mut world, &listener, 2_000 + port, 77));
    }
    assert_eq!(counts(&mut world), (0, 10));
    assert_eq!(world.server.counters().tcp.time_waits_given_up, 20);
    // A FIN that comes again is answered while it is remembered, and reset afterwards.
    for (port, (mine, theirs)) in ends.into_iter().enumerate() {
        let fin = TcpFlags::FIN | TcpFlags::ACK;
        let again = spoofed(1, 2_000 + port as u16, fin, mine.0.wrapping_sub(1), theirs.0);
        let expected = if port < 20 { TcpFlags::RST } else { TcpFlags::ACK };
        assert_eq!(answers(&mut world, &again)[0].0, expected, "{port}");
    }
}

/// RFC 9293, section 3.10.7.4: a retransmitted FIN is answered, and the timer restarts.
#[test]
fn a_repeated_fin_starts_it_again() {
    let mut world = World::new();
    let listener = world.listen(4);
    let (mine, theirs) = visit(&mut world, &listener, 2_000, 77);
    let fin = TcpFlags::FIN | TcpFlags::ACK;
    let again = spoofed(1, 2_000, fin, mine.0.wrapping_sub(1), theirs.0);
    world.pass(Duration::from_secs(50));
    assert_eq!(answers(&mut world, &again), [(TcpFlags::ACK, theirs, mine)]);
    world.pass(Duration::from_secs(50));
    assert_eq!(counts(&mut world), (0, 1));
    // A reset with the expected number ends TIME-WAIT (RFC 9293, section 3.10.7.4).
    let reset = spoofed(1, 2_000, TcpFlags::RST, mine.0, 0);
    assert_eq!(answers(&mut world, &reset), []);
    assert_eq!(counts(&mut world), (0, 0));
}

/// A host that stops should keep running for a while, because a retransmitted FIN may come.
#[test]
fn a_repeated_fin_is_expected_for_a_while() {
    let mut world = World::new();
    let listener = world.listen(4);
    let left = |world: &mut World| world.server.counters().last_acks_left.as_millis();
    assert_eq!(left(&mut world), 0);
    let (mine, theirs) = visit(&mut world, &listener, 2_000, 77);
    assert_eq!(left(&mut world), 400, "two of the shortest timeouts");
    world.pass(Duration::from_millis(300));
    assert_eq!(left(&mut world), 100);
    let fin = TcpFlags::FIN | TcpFlags::ACK;
    let again = spoofed(1, 2_000, fin, mine.0.wrapping_sub(1), theirs.0);
    assert_eq!(answers(&mut world, &again), [(TcpFlags::ACK, theirs, mine)]);
    assert_eq!(left(&mut world), 1_000);
    world.pass(Duration::from_secs(1));
    assert_eq!((left(&mut world), counts(&mut world)), (0, (0, 1)));
}

/// RFC 6191; RFC 9293, section 3.6.1: a newer SYN opens a connection, an older one is answered with an ACK.
#[test]
fn a_newer_syn_takes_the_place() {
    let mut world = World::with(options(), |config| config.tcp.timestamps = false);
    let listener = world.listen(4);
    let (mine, theirs) = visit(&mut world, &listener, 2_000, 77);
    let old = spoofed(1, 2_000, TcpFlags::SYN, 70, 0);
    assert_eq!(answers(&mut world, &old), [(TcpFlags::ACK, theirs, mine)]);
    let new = spoofed(1, 2_000, TcpFlags::SYN, 5_000, 0);
    let (flags, iss, ack) = answers(&mut world, &new)[0];
    assert_eq!((flags, ack), (TcpFlags::SYN | TcpFlags::ACK, SeqNumber(5_001)));
    assert!(iss - theirs > 0, "after all numbers that were used");
    assert_eq!(counts(&mut world), (1, 0));
    // Without a listener, the old entry stays.
    let (mine, theirs) = visit(&mut world, &listener, 2_001, 77);
    drop(listener);
    // The half-open connection is reset.
    while !world.server.turn(world.now).unwrap().is_idle() {}
    assert_eq!(world.back.take_all().len(), 1);
    let new = spoofed(1, 2_001, TcpFlags::SYN, 5_000, 0);
    assert_eq!(answers(&mut world, &new), []);
    let fin = TcpFlags::FIN | TcpFlags::ACK;
    let again = spoofed(1, 2_001, fin, mine.0.wrapping_sub(1), theirs.0);
    assert_eq!(answers(&mut world, &again), [(TcpFlags::ACK, theirs, mine)]);
}

/// The memory of the TIME-WAIT table is allocated with the host: less than 100 bytes per entry.
#[test]
fn each_takes_less_than_a_hundred_bytes() {
    let host_with = |time_waits| {
        let before = held_bytes();
        let mut config = config("10.0.0.2/24");
        config.time_waits = time_waits;
        let (there, back) = (MemoryLink::new(options()), MemoryLink::new(options()));
        let host = Host::new(there.source(), back.sink(), config).unwrap();
        (held_bytes() - before, host).0
    };
    for count in [1_000, 65_536, 100_000] {
        let each = (host_with(count) - host_with(1)) as f64 / count as f64;
        assert!((80.0..100.0).contains(&each), "{each} bytes each of {count}");
    }
    // No memory is used besides the table, whichever side closes first.
    let mut world = World::new();
    let listener = world.listen(4);
    visit(&mut world, &listener, 1_000, 77);
    let before = held_bytes();
    for port in 0..1_000 {
        visit(&mut world, &listener, 2_000 + port, 77);
    }
    assert_eq!(counts(&mut world), (0, 1_001));
    let each = (held_bytes() - before) as f64 / 1_000.0;
    assert!(each < 1.0, "{each} bytes each beside the table");
}

/// The client closes first: its local ports stay reserved in TIME-WAIT, but only for that destination.
#[test]
fn a_port_in_time_wait_is_not_chosen_again() {
    let mut world = World::new();
    let listener = world.listen(64);
    let mut ports = Vec::new();
    for _ in 0..200 {
        let (client, accepted) = world.connected(&listener);
        ports.push(client.local_addr().unwrap().port());
        drop(client);
        world.settle();
        drop(accepted);
        world.settle();
    }
    assert_eq!(world.client.counters().time_waits, 200);
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 200);
}

/// Data that arrived before TIME-WAIT stays readable, and then the end of the stream is reported.
#[test]
fn the_application_reads_on() {
    let mut world = World::new();
    let listener = world.listen(4);
    let (client, accepted) = world.connected(&listener);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    world.settle();
    assert_eq!(fill(&accepted, b"the last word"), 13);
    drop(accepted);
    world.settle();
    let counters = world.client.counters();
    assert_eq!((counters.connections, counters.time_waits), (0, 1));
    assert_eq!(drain(&client).unwrap(), (b"the last word".to_vec(), true));
    assert!(client.take_error().unwrap().is_none());
    let again = world.at_client().connect_nonblocking(server());
    assert_ne!(again.unwrap().local_addr().unwrap(), client.local_addr().unwrap());
    assert_eq!(fill_error(&client), ErrorKind::BrokenPipe);
}

fn fill_error(mut stream: &rxo_host::TcpStream) -> ErrorKind {
    std::io::Write::write(&mut stream, b"x").unwrap_err().kind()
}
