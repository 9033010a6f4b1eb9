//! The addresses that connections may have.

use std::net::{IpAddr, Ipv4Addr};

use rxo_frame::Frame;
use rxo_wire::TcpFlags;
use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;

use crate::world::{World, options};

/// RFC 9293, section 3.9.1.1 (MUST-46): multicast, broadcast, unspecified and own addresses are invalid
/// peers.
#[test]
fn no_connection_is_opened_to_what_is_no_host() {
    let world = World::new();
    for text in
        ["10.0.0.255", "255.255.255.255", "224.0.0.1", "0.0.0.0", "127.0.0.1", "[ff02::1]", "[::]"]
    {
        let to = format!("{text}:80").parse().unwrap();
        assert!(world.at_client().connect_nonblocking(to).is_err(), "{text}");
    }
}

/// RFC 9293, section 3.9.1.1 (MUST-44): without a local address, the host chooses one in the peer's network.
#[test]
fn a_connection_has_an_address_of_the_peers_network() {
    let world = World::new();
    for (to, from) in [("10.0.0.2:80", "10.0.0.1"), ("[fd00::2]:80", "fd00::1")] {
        let stream = world.at_client().connect_nonblocking(to.parse().unwrap()).unwrap();
        assert_eq!(stream.local_addr().unwrap().ip(), from.parse::<IpAddr>().unwrap());
    }
}

/// RFC 9293, section 3.9.1.1 (MUST-41): a second listener on the same address is refused, and does not affect
/// the first or its connections.
#[test]
fn a_second_listener_touches_nothing() {
    let mut world = World::new();
    let listener = world.listen(4);
    let (first, _) = world.connected(&listener);
    assert!(world.at_server().listen(listener.local_addr().unwrap(), 4).is_err());
    world.settle();
    assert!(first.is_connected().unwrap());
    let (second, _) = world.connected(&listener);
    assert!(second.is_connected().unwrap());
    assert_eq!(world.server.counters().connections, 2);
}

/// Returns a segment for port 80, without a link header.
fn segment(source: &str, destination: &str, flags: TcpFlags) -> Vec<u8> {
    let address = |text: &str| text.parse::<Ipv4Addr>().unwrap();
    let ip = Ipv4Header {
        source: address(source),
        destination: address(destination),
        protocol: 6,
        payload_bytes: 20,
        ..Ipv4Header::default()
    };
    let tcp = TcpHeader {
        source_port: 5_000,
        destination_port: 80,
        flags,
        window: 1_000,
        ..TcpHeader::default()
    };
    let mut packet = vec![0; 40];
    let rest = ip.write(&mut packet).unwrap();
    tcp.write(rest).unwrap();
    write_tcp_checksum(rest, ip.pseudo_header(), Summer::portable()).unwrap();
    packet
}

/// Returns the number of packets that the server sends in answer to `packet`, and the number of its
/// connections then.
fn heard(packet: &[u8]) -> (usize, usize) {
    let mut world = World::new();
    let listener = world.listen(4);
    world.settle();
    world.there.push(&Frame::new(packet, world.now));
    world.there.set_now(world.now);
    while !world.server.turn(world.now).unwrap().is_idle() {}
    let sent = std::iter::from_fn(|| world.back.take()).count();
    drop(listener);
    (sent, world.server.counters().connections)
}

/// RFC 9293, section 3.9.2.3 (MUST-57, MUST-63), and RFC 1122, section 3.2.1.3: a SYN to a broadcast or
/// multicast address, and any segment from an address that cannot be a host's, is dropped without an answer.
#[test]
fn segments_of_addresses_that_cannot_be_are_dropped() {
    assert_eq!(heard(&segment("10.0.0.9", "10.0.0.2", TcpFlags::SYN)), (1, 1));
    assert_eq!(heard(&segment("10.0.0.9", "10.0.0.2", TcpFlags::ACK)), (1, 0));
    for to in ["10.0.0.255", "255.255.255.255", "224.0.0.1", "10.0.0.3"] {
        assert_eq!(heard(&segment("10.0.0.9", to, TcpFlags::SYN)), (0, 0), "to {to}");
    }
    for from in ["10.0.0.255", "255.255.255.255", "224.0.0.1", "0.0.0.0", "127.0.0.1", "10.0.0.2"] {
        for flags in [TcpFlags::SYN, TcpFlags::ACK] {
            assert_eq!(heard(&segment(from, "10.0.0.2", flags)), (0, 0), "from {from}");
        }
    }
}

/// Closing a listener frees only its own port: connections from that port keep their pair of sockets,
/// whatever else is opened.
#[test]
fn a_listener_that_goes_frees_no_connections_port() {
    let mut world = World::with(options(), |config| {
        config.tcp.send_buffer_bytes = 64;
        config.tcp.receive_buffer_bytes = 64;
        config.tcp.largest_buffers = None;
        (config.tcp.receive_pieces, config.tcp.sent_ranges) = (2, 32);
        config.sockets = 1 << 16;
    });
    let connect = |world: &World, to: &str| {
        world
            .at_client()
            .connect_nonblocking(to.parse().unwrap())
            .map(|stream| (stream.local_addr().unwrap(), stream))
    };
    let (first, _alive) = connect(&world, "10.0.0.77:80").unwrap();
    drop(world.at_client().listen(first, 4).unwrap());
    world.client.turn(world.now).unwrap();
    let mut others = Vec::new();
    while let Ok((local, stream)) = connect(&world, "10.0.0.77:80") {
        assert_ne!(local, first);
        others.push(stream);
    }
    assert_eq!(others.len(), 16_383, "all ports of this destination");
    // Another destination has its own set of ports.
    assert!(connect(&world, "10.0.0.78:80").is_ok() && connect(&world, "10.0.0.77:81").is_ok());
    drop(others);
    world.settle();
    assert!(connect(&world, "10.0.0.77:80").is_ok());
}
