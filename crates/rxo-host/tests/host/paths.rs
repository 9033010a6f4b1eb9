//! Path MTUs: a new connection starts with the path MTU that an earlier one has found.

use std::time::Duration;

use rxo_frame::Frame;
use rxo_host::{TcpListener, TcpStream};
use rxo_wire::SeqNumber;

use crate::peer::{icmp, ipv4};
use crate::world::{World, fill, pattern};

/// Data bytes of a full segment on Ethernet, with timestamps.
const FULL: u32 = 1_448;

/// Builds the ICMP error of a router: the segment `seq` from 10.0.0.1 to 10.0.0.2 is too big, and `mtu` bytes
/// pass.
fn too_big(stream: &TcpStream, seq: SeqNumber, mtu: u16) -> Vec<u8> {
    let ports = [stream.local_addr().unwrap().port(), stream.peer_addr().unwrap().port()];
    let segment = [&ports[0].to_be_bytes()[..], &ports[1].to_be_bytes(), &seq.0.to_be_bytes()];
    let quoted = ipv4(6, "10.0.0.1", "10.0.0.2", &segment.concat());
    let rest = [&u32::from(mtu).to_be_bytes()[..], &quoted].concat();
    icmp("10.0.0.9", "10.0.0.1", 3, 4, &rest)
}

/// Opens a connection whose full segments pass a router with an MTU of 1,000 bytes. If `is_true`, the
/// router's error names a segment that is in flight.
fn meets_a_router(
    world: &mut World,
    listener: &TcpListener,
    is_true: bool,
) -> (TcpStream, TcpStream) {
    let (stream, accepted) = world.connected(listener);
    fill(&stream, &pattern(20_000));
    world.client.turn(world.now).unwrap();
    let una = stream.statistics().snd_una;
    let seq = if is_true { una } else { una + 1_000_000 };
    world.back.push(&Frame::new(too_big(&stream, seq, 1_000), world.now));
    world.settle();
    (stream, accepted)
}

fn segment_bytes(stream: &TcpStream) -> u32 {
    stream.statistics().mss
}

/// RFC 1191, sections 6.2 and 6.3: path MTUs are shared by connections, and expire.
#[test]
fn the_next_connection_begins_with_what_one_has_found_out() {
    let mut world = World::new();
    let listener = world.listen(8);
    let (first, _accepted) = meets_a_router(&mut world, &listener, true);
    assert_eq!(segment_bytes(&first), 948);

    let (second, accepted) = world.connected(&listener);
    assert_eq!(segment_bytes(&second), 948);
    // Nothing is known about the other direction.
    assert_eq!(segment_bytes(&accepted), FULL);

    // The entry expires after ten minutes.
    world.pass(Duration::from_secs(599));
    assert_eq!(segment_bytes(&world.connected(&listener).0), 948);
    world.pass(Duration::from_secs(1));
    assert_eq!(segment_bytes(&world.connected(&listener).0), FULL);
}

/// A known path MTU applies to the destination, no matter which side opens the connection.
#[test]
fn a_connection_that_the_peer_opens_begins_with_it_as_well() {
    for syn_cookies_only in [false, true] {
        let mut world = World::new();
        let (there, back) = (world.listen(8), listen_at_client(&world, syn_cookies_only));
        let _first = meets_a_router(&mut world, &there, true);
        let mut opened = Vec::new();
        for _ in 0..3 {
            let to = back.local_addr().unwrap();
            opened.push(world.at_server().connect_nonblocking(to).unwrap());
        }
        world.settle();
        let mut accepted = 0;
        while let Ok((stream, _)) = back.accept() {
            assert_eq!(segment_bytes(&stream), 948);
            accepted += 1;
        }
        assert!(accepted > 0);
        let by_cookie = world.client.counters().tcp.cookies_taken;
        assert_eq!(by_cookie > 0, syn_cookies_only);
    }
}

/// Listens at the client; with a backlog of one, further SYNs are answered with cookies.
fn listen_at_client(world: &World, is_small: bool) -> TcpListener {
    let address = "10.0.0.1:80".parse().unwrap();
    let listener = world.at_client().listen(address, if is_small { 1 } else { 8 }).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

/// RFC 5927, section 4.1: the path MTU of an ICMP error that fails validation is not stored.
#[test]
fn what_nobody_believes_is_not_remembered() {
    let mut world = World::new();
    let listener = world.listen(8);
    let (first, _accepted) = meets_a_router(&mut world, &listener, false);
    assert_eq!(first.statistics().path.too_big_ignored, 1);
    assert_eq!(segment_bytes(&world.connected(&listener).0), FULL);
}
