//! Listeners that are full, floods, and connections that come back.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use rxo_frame::Frame;
use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::{SeqNumber, TcpFlags, Transport, parse_ip};

use crate::world::{World, drain, options, server};

/// A packet from `port` of a host that is not there.
pub(crate) fn spoofed(host: u32, port: u16, flags: TcpFlags, seq: u32, ack: u32) -> Vec<u8> {
    let tcp = TcpHeader {
        source_port: port,
        destination_port: 80,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window: 1_000,
        ..TcpHeader::default()
    };
    let ip = Ipv4Header {
        source: (0x0a00_0000 | host & 0xff).into(),
        destination: [10, 0, 0, 2].into(),
        protocol: 6,
        payload_bytes: tcp.bytes(),
        ..Ipv4Header::default()
    };
    let mut packet = vec![0; 40];
    let segment = ip.write(&mut packet).unwrap();
    tcp.write(segment).unwrap();
    write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect()).unwrap();
    packet
}

/// Fills the backlog with SYNs from nobody.
fn flood(world: &mut World, syns: u16) {
    for port in 0..syns {
        let syn = spoofed(77, 1_000 + port, TcpFlags::SYN, 5, 0);
        world.there.push(&Frame::new(syn, world.now));
    }
    world.server.turn(world.now).unwrap();
    let _answers = world.back.take_all();
}

#[test]
fn a_full_listener_sends_cookies_and_keeps_nothing() {
    let mut world = World::new();
    let listener = world.listen(4);
    flood(&mut world, 100);
    let counters = world.server.counters();
    assert_eq!((counters.connections, counters.cookies_sent), (4, 96));

    let (mut stream, accepted) = world.connected(&listener);
    assert_eq!(world.server.counters().cookies_taken, 1);
    let agreed = accepted.statistics();
    assert!(agreed.timestamps && agreed.sack && agreed.ecn);
    assert_eq!(agreed.mss, stream.statistics().mss);
    stream.write_all(b"by cookie").unwrap();
    world.settle();
    assert_eq!(drain(&accepted).unwrap(), (b"by cookie".to_vec(), false));
}

#[test]
fn without_timestamps_a_cookie_brings_back_the_segment_size_alone() {
    let mut world = World::with(options(), |config| config.tcp.timestamps = false);
    let listener = world.listen(1);
    flood(&mut world, 10);
    let (mut stream, accepted) = world.connected(&listener);
    let agreed = accepted.statistics();
    assert!(!agreed.sack && !agreed.ecn && agreed.mss == 1460, "{agreed:?}");
    stream.write_all(b"plain").unwrap();
    world.settle();
    assert_eq!(drain(&accepted).unwrap(), (b"plain".to_vec(), false));
}

#[test]
fn without_cookies_a_full_listener_drops_syns_until_there_is_room() {
    let mut world = World::with(options(), |config| config.syn_cookies = false);
    let listener = world.listen(1);
    flood(&mut world, 10);
    let stream = world.at_client().connect_nonblocking(server()).unwrap();
    world.settle();
    assert!(!stream.is_connected().unwrap());
    assert!(world.server.counters().syns_dropped >= 10);
    // The one that is opening is given up after three minutes, at most; ours asks again.
    world.pass(Duration::from_secs(250));
    let outcome = stream.is_connected();
    assert!(outcome.is_err() || listener.accept().is_ok(), "{outcome:?}");
}

#[test]
fn a_full_queue_of_open_connections_is_not_overrun() {
    // With cookies the peers would take themselves for connected, and find room when they send.
    let mut world = World::with(options(), |config| config.syn_cookies = false);
    let listener = world.listen(2);
    let streams: Vec<_> =
        (0..6).map(|_| world.at_client().connect_nonblocking(server()).unwrap()).collect();
    world.settle();
    assert_eq!(world.server.counters().connections, 2);
    let open = streams.iter().filter(|stream| stream.is_connected().unwrap()).count();
    assert_eq!(open, 2);
    // Who asks again finds room as soon as somebody was accepted.
    for _ in 0..6 {
        while listener.accept().is_ok() {}
        world.pass(Duration::from_secs(4));
    }
    assert!(streams.iter().all(|stream| stream.is_connected().unwrap()));
}

#[test]
fn resets_to_strangers_are_limited() {
    let mut world = World::new();
    for port in 0..1_000 {
        let ack = spoofed(77, 1_000 + port, TcpFlags::ACK, 5, 6);
        world.there.push(&Frame::new(ack, world.now));
    }
    world.settle();
    let counters = world.server.counters();
    assert_eq!((counters.strangers, counters.resets), (1_000, 256));
}

#[test]
fn sockets_are_bounded() {
    let mut world = World::with(options(), |config| config.sockets = 3);
    let listener = world.listen(16);
    let streams: Vec<_> =
        (0..3).map(|_| world.at_client().connect_nonblocking(server()).unwrap()).collect();
    let error = world.at_client().connect_nonblocking(server()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    world.settle();
    assert_eq!(world.server.counters().connections, 3);
    drop((streams, listener));
    world.pass(Duration::from_secs(70));
    assert_eq!(world.client.counters().connections, 0);
    world.at_client().connect_nonblocking(server()).unwrap();
}

/// RFC 9293, section 3.6.1: a new SYN takes the place of a connection in TIME-WAIT.
#[test]
fn a_syn_takes_the_place_of_time_wait() {
    let mut world = World::with(options(), |config| config.tcp.timestamps = false);
    let listener = world.listen(4);
    let (stream, accepted) = world.connected(&listener);
    let port = stream.local_addr().unwrap().port();
    let received = accepted.statistics().rcv_nxt;
    drop(accepted);
    world.settle();
    // The server closed first, so it is the one in TIME-WAIT.
    drop(stream);
    world.settle();
    assert_eq!(world.server.counters().connections, 1);
    assert_eq!(world.client.counters().connections, 0);

    let old = spoofed(1, port, TcpFlags::SYN, received.0, 0);
    assert_eq!(answer(&mut world, &old), TcpFlags::ACK);
    let new = spoofed(1, port, TcpFlags::SYN, received.0.wrapping_add(100_000), 0);
    assert_eq!(answer(&mut world, &new), TcpFlags::SYN | TcpFlags::ACK);
    assert_eq!(world.server.counters().connections, 1);
}

/// The flags of what the server answers to `packet`.
fn answer(world: &mut World, packet: &[u8]) -> TcpFlags {
    world.there.push(&Frame::new(packet, world.now));
    world.server.turn(world.now).unwrap();
    let answers = world.back.take_all();
    let Transport::Tcp(tcp) = parse_ip(&answers.last().unwrap().bytes).unwrap().transport else {
        panic!("no TCP")
    };
    tcp.flags
}

/// A peer that opened by a cookie while nobody had room, and has said all it has to say: its segments
/// come again, the first of them too.
#[test]
fn who_was_not_let_in_is_not_reset() {
    let mut world = World::new();
    let listener = world.listen(1);
    flood(&mut world, 10);
    let (_, first) = world.connected(&listener);
    let peers: Vec<_> = (0..3)
        .map(|_| {
            let stream = world.at_client().connect_nonblocking(server()).unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    world.settle();
    for mut stream in &peers {
        stream.write_all(b"hello").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut heard = 0;
    for _ in 0..60 {
        world.pass(Duration::from_secs(1));
        while let Ok((accepted, _)) = listener.accept() {
            accepted.set_nonblocking(true).unwrap();
            world.pass(Duration::from_secs(1));
            assert_eq!(drain(&accepted).unwrap(), (b"hello".to_vec(), true));
            heard += 1;
        }
    }
    assert_eq!(heard, 3);
    drop(first);
}
