//! Opening, refusing and closing connections.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::time::Duration;

use rxo_device::{MemoryLink, MemoryOptions};
use rxo_frame::{Frame, Instant};
use rxo_host::{Host, HostConfig, TcpStream};

use crate::world::{World, config, drain, options, server};

#[test]
fn nobody_listens_and_the_connection_is_refused() {
    let mut world = World::new();
    let stream = world.at_client().connect_nonblocking(server()).unwrap();
    world.settle();
    assert_eq!(stream.is_connected().unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(stream.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionRefused);
    assert!(stream.take_error().unwrap().is_none(), "told once");
    assert_eq!(world.server.counters().tcp.resets, 1);
    assert_eq!(world.client.counters().connections, 0);
}

#[test]
fn nobody_answers_and_the_connection_times_out() {
    let mut world = World::new();
    let stream = world.at_client().connect_nonblocking("10.0.0.77:80".parse().unwrap()).unwrap();
    world.pass(Duration::from_secs(200));
    assert_eq!(stream.is_connected().unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(world.client.counters().connections, 0);
    assert_eq!(world.client.counters().timers, 0);
}

#[test]
fn there_is_no_route_to_everywhere() {
    let world = World::new();
    let error = world.at_client().connect_nonblocking("192.0.2.1:80".parse().unwrap());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NetworkUnreachable);
}

/// RFC 9293, section 3.9.1.1 (MUST-42): a connection that opens from a port does not prevent a listener on
/// it.
#[test]
fn a_port_is_listened_on_while_a_connection_opens_from_it() {
    let mut world = World::new();
    // There is no host at this address.
    let opening = world.at_client().connect_nonblocking("10.0.0.77:80".parse().unwrap()).unwrap();
    world.settle();
    let listener = world.at_client().listen(opening.local_addr().unwrap(), 4).unwrap();
    listener.set_nonblocking(true).unwrap();
    world.settle();
    let address = listener.local_addr().unwrap();
    let mut stream = world.at_server().connect_nonblocking(address).unwrap();
    world.settle();
    stream.write_all(b"hello").unwrap();
    world.settle();
    let (accepted, _) = listener.accept().unwrap();
    assert_eq!(accepted.local_addr().unwrap(), opening.local_addr().unwrap());
    assert_eq!(drain_now(&accepted), b"hello");
    assert!(!opening.is_connected().unwrap());
}

fn drain_now(stream: &TcpStream) -> Vec<u8> {
    stream.set_nonblocking(true).unwrap();
    drain(stream).unwrap().0
}

/// RFC 9293, section 3.7.3 (SHLD-6): the smaller MTU of both directions limits the announced segment size.
#[test]
fn the_smaller_end_of_the_device_decides_which_segment_is_announced() {
    for mtus in [[1_500, 1_200], [1_200, 1_500]] {
        let [out, back] = mtus.map(|mtu| MemoryLink::new(MemoryOptions { mtu, ..options() }));
        let mut host = Host::new(back.source(), out.sink(), config("10.0.0.1/24")).unwrap();
        let _opening = host.handle().connect_nonblocking(server()).unwrap();
        host.turn(Instant::from_micros(1)).unwrap();
        assert_eq!(announced(&out.take().unwrap().bytes), 1_160);
    }
}

/// The maximum segment size in a SYN or SYN-ACK: option kind 2, length 4.
fn announced(syn: &[u8]) -> u16 {
    let options = if syn[0] >> 4 == 4 { 40 } else { 60 };
    let at = (options..syn.len()).find(|at| syn[*at..].starts_with(&[2, 4])).unwrap();
    u16::from_be_bytes([syn[at + 2], syn[at + 3]])
}

/// RFC 9293, section 3.7.1 (MUST-67), with default settings: for every MTU, a SYN, a SYN-ACK and a SYN-ACK
/// with a cookie announce the segment size that fits.
#[test]
fn the_largest_segment_that_fits_is_announced() {
    for mtu in [1_280_u16, 1_500, 4_000, 9_000, 65_535] {
        for (address, headers) in [("10.0.0.2:80", 40), ("[fd00::2]:80", 60)] {
            let options = MemoryOptions { mtu: mtu.into(), ..options() };
            let mut world = World::with(options, |_| {});
            let _listener = world.at_server().listen(address.parse().unwrap(), 1).unwrap();
            let client = world.at_client();
            let _streams: Vec<_> = (0..2)
                .map(|_| client.connect_nonblocking(address.parse().unwrap()).unwrap())
                .collect();
            world.client.turn(world.now).unwrap();
            let syns = world.there.take_all();
            for syn in &syns {
                let checksum = syn.offload.checksum;
                world.there.push(&Frame { checksum, ..Frame::new(&syn.bytes, world.now) });
            }
            world.server.turn(world.now).unwrap();
            assert_eq!(world.server.counters().tcp.cookies_sent, 1);
            let answers = world.back.take_all();
            for packet in syns.iter().chain(&answers) {
                assert_eq!(announced(&packet.bytes), mtu - headers, "{mtu} {address}");
            }
            assert_eq!((syns.len(), answers.len()), (2, 2));
        }
    }
}

#[test]
fn an_address_is_listened_on_once() {
    let world = World::new();
    let first = world.at_server().listen(server(), 1).unwrap();
    let again = world.at_server().listen("0.0.0.0:80".parse().unwrap(), 1);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(first);
    world.at_server().listen("0.0.0.0:80".parse().unwrap(), 1).unwrap();
    let foreign = world.at_server().listen("10.0.0.1:80".parse().unwrap(), 1);
    assert_eq!(foreign.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    let any = world.at_server().listen("10.0.0.2:0".parse().unwrap(), 1).unwrap();
    assert_ne!(any.local_addr().unwrap().port(), 0);
}

#[test]
fn ipv6_is_the_same() {
    let mut world = World::new();
    let listener = world.at_server().listen("[fd00::2]:80".parse().unwrap(), 1).unwrap();
    let (mut stream, accepted) = world.connected(&listener);
    stream.write_all(b"six").unwrap();
    world.settle();
    assert_eq!(drain(&accepted).unwrap(), (b"six".to_vec(), false));
}

#[test]
fn half_closed_each_way_and_everything_is_given_back() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (mut stream, mut accepted) = world.connected(&listener);
    stream.write_all(b"question").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    world.settle();
    assert_eq!(drain(&accepted).unwrap(), (b"question".to_vec(), true));
    accepted.write_all(b"answer").unwrap();
    world.settle();
    assert_eq!(drain(&stream).unwrap(), (b"answer".to_vec(), false));
    drop(accepted);
    world.settle();
    assert_eq!(drain(&stream).unwrap(), (Vec::new(), true));
    drop((stream, listener));
    world.pass(Duration::from_secs(61));
    for host in [&mut world.client, &mut world.server] {
        let counters = host.counters();
        assert_eq!((counters.connections, counters.timers), (0, 0));
    }
}

#[test]
fn an_unread_byte_makes_closing_a_reset() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (mut stream, accepted) = world.connected(&listener);
    stream.write_all(b"unread").unwrap();
    world.settle();
    drop(accepted);
    world.settle();
    assert_eq!(drain(&stream).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(world.client.counters().connections, 0);
    assert_eq!(world.server.counters().connections, 0);
}

#[test]
fn an_abort_resets_the_peer() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    stream.abort();
    world.settle();
    assert_eq!(drain(&accepted).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(drain(&stream).unwrap_err().kind(), ErrorKind::ConnectionAborted);
}

#[test]
fn a_listener_that_is_dropped_resets_who_waits() {
    let mut world = World::new();
    let listener = world.listen(4);
    let stream = world.at_client().connect_nonblocking(server()).unwrap();
    stream.set_nonblocking(true).unwrap();
    world.settle();
    drop(listener);
    world.settle();
    assert_eq!(drain(&stream).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(world.server.counters().connections, 0);
}

/// Returns EHOSTUNREACH, as Linux does, when no station answers for the address.
#[test]
fn where_nobody_answers_for_the_address_opening_ends() {
    let (there, back) =
        (MemoryLink::new(MemoryOptions::default()), MemoryLink::new(MemoryOptions::default()));
    let config = HostConfig::new(vec!["10.0.0.1/24".parse().unwrap()], [1, 2]);
    let mut host = Host::new(back.source(), there.sink(), config).unwrap();
    let stream = host.handle().connect_nonblocking("10.0.0.9:80".parse().unwrap()).unwrap();
    let ended = (0..100).find_map(|tenth: u64| {
        let now = Instant::from_micros(tenth * 100_000);
        host.turn(now).unwrap();
        assert!(host.poll_at().is_none_or(|at| now < at), "nothing can be done before it answers");
        stream.take_error().unwrap()
    });
    assert_eq!(ended.unwrap().kind(), std::io::ErrorKind::HostUnreachable);
    assert_eq!((host.counters().connections, host.counters().timers), (0, 0));
}
