//! Tests of UDP sockets that other code has opened, and of datagrams that stay in its memory.

use std::net::{self, IpAddr, SocketAddr};
use std::os::fd::AsFd;

use rxo_driver::udp::{Datagram, UdpOptions, UdpSink, UdpSocket, UdpSource};
use rxo_driver::{clock, wait};

use crate::Test;
use crate::network::{FAR_ADDRESS, LONG, NEAR_ADDRESS, Pair, quiet_namespace};

pub(crate) const TESTS: &[Test] = &[
    ("udp_datagrams_of_the_caller_leave_as_trains_without_a_copy", from_own_memory),
    ("udp_a_connected_socket_of_other_code_carries_trains", connected),
    ("udp_marks_and_addresses_arrive_over_ipv4_and_ipv6", details),
    ("udp_a_descriptor_that_is_no_udp_socket_is_refused", refused),
];

/// A received train: sender, destination, ECN bits, and the first byte and length of each datagram.
type Seen = (SocketAddr, Option<IpAddr>, u8, Vec<(u8, usize)>);

/// Receives trains of `count` datagrams in all; panics when that takes too long.
fn receive(source: &mut UdpSource, count: usize) -> Vec<Seen> {
    let (mut seen, mut datagrams) = (Vec::new(), 0);
    let ends_at = clock::now() + LONG;
    while datagrams < count {
        let left = ends_at.since(clock::now());
        assert!(!left.is_zero(), "waited too long; there are {datagrams}");
        let messages = source.receive(|train| {
            let of: Vec<_> = train.datagrams().map(|bytes| (bytes[0], bytes.len())).collect();
            datagrams += of.len();
            seen.push((train.from, train.to.map(|(ip, _)| ip), train.ecn, of));
        });
        if messages.unwrap() == 0 {
            wait::wait_readable(&[source.as_fd()], Some(left)).unwrap();
        }
    }
    seen
}

/// Returns the datagrams of all trains in order.
fn all(seen: &[Seen]) -> Vec<(u8, usize)> {
    seen.iter().flat_map(|(.., datagrams)| datagrams.clone()).collect()
}

fn send(sink: &mut UdpSink, datagrams: &[Datagram<'_>]) {
    assert_eq!(sink.send_from(datagrams), datagrams.len());
}

fn from_own_memory() {
    let host = quiet_namespace("udp");
    host.run(|| {
        let bind = || net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let options = UdpOptions::default();
        let receiver = UdpSocket::from_fd(bind().into(), options).unwrap();
        let sender = UdpSocket::from_fd(bind().into(), options).unwrap();
        let (mut source, mut sink) = (receiver.source(), sender.sink());
        let (to, lengths) =
            (receiver.local_addr(), [vec![1_200; 60], vec![300, 900, 900]].concat());
        let memory: Vec<_> = (0..).zip(&lengths).map(|(n, &bytes)| vec![n; bytes]).collect();
        let apart: Vec<_> = memory.iter().map(|bytes| Datagram::new(to, bytes)).collect();
        send(&mut sink, &apart);
        let expected: Vec<_> = (0..).zip(lengths).collect();
        assert_eq!(all(&receive(&mut source, expected.len())), expected);
        let together = memory[..60].concat();
        let chunks: Vec<_> = together.chunks(1_200).map(|bytes| Datagram::new(to, bytes)).collect();
        send(&mut sink, &chunks);
        assert_eq!(all(&receive(&mut source, 60)), expected[..60]);
        let counters = sink.counters();
        assert_eq!((counters.datagrams, counters.dropped), (123, 0));
        if sender.options().send_trains {
            // 53 datagrams of 1,200 bytes fill a message; a shorter one ends a train.
            assert_eq!(counters.messages, 3 + 2);
        }
    })
    .unwrap();
}

fn connected() {
    let pair = Pair::addressed();
    let (near, far) = ((NEAR_ADDRESS, 4_000), (FAR_ADDRESS, 4_001));
    let other = pair.far.run(|| net::UdpSocket::bind(far).unwrap()).unwrap();
    let socket = pair.near.run(|| net::UdpSocket::bind(near).unwrap()).unwrap();
    socket.connect(far).unwrap();
    let ends =
        [socket, other].map(|it| UdpSocket::from_fd(it.into(), UdpOptions::default()).unwrap());
    let bytes = [5; 1_000];
    for (from, to, at) in [(0, 1, far), (1, 0, near)] {
        let to_address = SocketAddr::from(at);
        send(&mut ends[from].sink(), &[Datagram::new(to_address, &bytes); 9]);
        let seen = receive(&mut ends[to].source(), 9);
        assert_eq!(all(&seen), [(5, 1_000); 9]);
        assert_eq!(seen[0].0, ends[from].local_addr());
    }
}

fn details() {
    let host = quiet_namespace("udp");
    host.run(|| {
        let options = UdpOptions { receive_details: true, ..UdpOptions::default() };
        let loopback = ["127.0.0.7:0", "127.0.0.9:0"];
        let mut rows = vec![(loopback, "127.0.0.8")];
        if net::UdpSocket::bind("[::1]:0").is_ok() {
            rows.push((["[::1]:0"; 2], "::1"));
        }
        for ([receiver, sender], from) in rows {
            let receiver = UdpSocket::bind(receiver.parse().unwrap(), options).unwrap();
            let sender = if from == "::1" { sender } else { "0.0.0.0:0" };
            let sender = UdpSocket::bind(sender.parse().unwrap(), UdpOptions::default()).unwrap();
            let (to, from) = (receiver.local_addr(), from.parse().unwrap());
            let marked = Datagram { from: Some(from), ecn: 1, ..Datagram::new(to, &[3; 500]) };
            let plain = Datagram { from: Some(from), ..Datagram::new(to, &[4; 500]) };
            send(&mut sender.sink(), &[marked, marked, marked, plain]);
            let seen = receive(&mut receiver.source(), 4);
            for (sender, destination, ecn, datagrams) in seen {
                assert_eq!((sender.ip(), destination), (from, Some(to.ip())));
                assert!(datagrams.iter().all(|&(first, _)| first == if ecn == 1 { 3 } else { 4 }));
            }
        }
    })
    .unwrap();
}

fn refused() {
    let tcp = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    for other in [tcp.into(), file.into()] {
        let error = UdpSocket::from_fd(other, UdpOptions::default()).unwrap_err().to_string();
        assert!(error.contains("bound UDP socket"), "{error}");
    }
}
