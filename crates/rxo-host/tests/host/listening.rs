//! Full listeners, floods, and the reuse of connections.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use rxo_frame::Frame;
use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::{SeqNumber, TcpFlags, Transport, parse_ip};

use crate::world::{World, drain, options, server};

/// A packet from `port` of a host that does not exist.
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

/// Fills a listener's backlog with SYNs from a host that does not exist.
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
    assert_eq!((counters.connections, counters.tcp.cookies_sent), (4, 96));

    let (mut stream, accepted) = world.connected(&listener);
    assert_eq!(world.server.counters().tcp.cookies_taken, 1);
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
    assert!(world.server.counters().tcp.syns_dropped >= 10);
    // The one that is opening is given up after three minutes, at most; ours asks again.
    world.pass(Duration::from_secs(250));
    let outcome = stream.is_connected();
    assert!(outcome.is_err() || listener.accept().is_ok(), "{outcome:?}");
}

#[test]
fn a_full_queue_of_open_connections_is_not_overrun() {
    // With cookies the peers would consider themselves connected, and be accepted when they send.
    let mut world = World::with(options(), |config| config.syn_cookies = false);
    let listener = world.listen(2);
    let streams: Vec<_> =
        (0..6).map(|_| world.at_client().connect_nonblocking(server()).unwrap()).collect();
    world.settle();
    assert_eq!(world.server.counters().connections, 2);
    let open = streams.iter().filter(|stream| stream.is_connected().unwrap()).count();
    assert_eq!(open, 2);
    // A client that retransmits is accepted once the queue has space.
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
    assert_eq!((counters.tcp.strangers, counters.tcp.resets), (1_000, 256));
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

/// A peer returned a cookie while the queue was full, and has sent all its data. It is not reset: its
/// segments are retransmitted, including the first.
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

/// The last segment of the handshake and a window update in one poll: the engine delivers both as records of
/// pure ACKs. The first opens the connection, the second is passed to it.
#[test]
fn a_cookie_may_come_back_with_more() {
    for has_text in [false, true] {
        let mut world = World::new();
        let listener = world.listen(4);
        flood(&mut world, 100);
        world.there.push(&Frame::new(spoofed(1, 900, TcpFlags::SYN, 99, 0), world.now));
        world.server.turn(world.now).unwrap();
        let sent = world.back.take_all();
        let Transport::Tcp(cookie) = parse_ip(&sent[0].bytes).unwrap().transport else { panic!() };
        for seq in [100, if has_text { 101 } else { 100 }] {
            let ack = cookie.seq.0.wrapping_add(1);
            let packet = match has_text {
                true => with_text(900, seq, ack),
                false => spoofed(1, 900, TcpFlags::ACK, seq, ack),
            };
            world.there.push(&Frame::new(packet, world.now));
        }
        world.server.turn(world.now).unwrap();
        let counters = world.server.counters();
        assert_eq!(
            (counters.tcp.cookies_taken, counters.tcp.resets, counters.tcp.strangers),
            (1, 0, 0)
        );
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        assert_eq!(drain(&accepted).unwrap().0.len(), if has_text { 2 } else { 0 });
    }
}

/// Builds a segment with one byte of data.
fn with_text(port: u16, seq: u32, ack: u32) -> Vec<u8> {
    let tcp = TcpHeader {
        source_port: port,
        destination_port: 80,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags: TcpFlags::ACK,
        window: 1_000,
        ..TcpHeader::default()
    };
    let ip = Ipv4Header {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        protocol: 6,
        payload_bytes: tcp.bytes() + 1,
        ..Ipv4Header::default()
    };
    let mut packet = vec![0; 41];
    let segment = ip.write(&mut packet).unwrap();
    tcp.write(segment).unwrap();
    write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect()).unwrap();
    packet
}

/// RFC 9293, section 3.10.7.2: a listener drops a segment without SYN and ACK; a port without a listener
/// answers it with a reset (section 3.10.7.1).
#[test]
fn a_segment_without_ack_is_dropped_where_somebody_listens() {
    let mut world = World::new();
    let stray = spoofed(77, 1_000, TcpFlags::PSH, 5, 0);
    let answers = |world: &mut World| {
        world.there.push(&Frame::new(&stray, world.now));
        world.server.turn(world.now).unwrap();
        world.back.take_all().len()
    };
    assert_eq!(answers(&mut world), 1);
    let _listener = world.listen(4);
    assert_eq!(answers(&mut world), 0);
}
