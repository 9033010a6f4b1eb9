//! Tests of trains of datagrams between real sockets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use rxo_driver::udp::{Outbox, UdpOptions, UdpSink, UdpSocket, UdpSource};
use rxo_driver::{clock, wait};

use crate::Test;
use crate::network::{FAR_ADDRESS, LONG, NEAR_ADDRESS, Pair, quiet_namespace};

pub(crate) const TESTS: &[Test] = &[
    ("udp_trains_arrive_as_the_datagrams_that_were_sent", trains_arrive),
    ("udp_trains_cross_a_veth_between_ipv6_sockets_and_ipv4", trains_cross_a_veth),
    ("udp_ecn_fields_cross_a_veth_and_part_trains", ecn_fields_cross_a_veth),
    ("udp_without_trains_each_datagram_is_a_message", without_trains),
    ("udp_a_refused_train_is_sent_singly_and_loses_nothing", refused_train),
    ("udp_a_narrow_route_leaves_trains_to_the_others", one_narrow_route),
    ("udp_what_has_no_route_is_dropped_and_counted", no_route),
];

const ALONE: UdpOptions = UdpOptions {
    receive_trains: false,
    send_trains: false,
    buffer_bytes: 4 << 20,
    mark: 0,
    receive_details: false,
    messages: 8,
};

/// Opens a socket on the loopback interface of a new namespace. The socket is both sender and receiver.
fn on_loopback(options: UdpOptions, mtu: u32) -> (UdpSocket, UdpSink, UdpSource) {
    let namespace = quiet_namespace("udp");
    namespace.interface("lo").set_mtu(mtu).unwrap();
    let bind = || UdpSocket::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let socket = namespace.run(bind).unwrap();
    let (sink, source) = (socket.sink(), socket.source());
    (socket, sink, source)
}

/// Sends datagrams of these lengths, each filled with its number.
fn send(sink: &mut UdpSink, to: SocketAddr, lengths: &[usize]) {
    let mut outbox = Outbox::new(1 << 18);
    for (n, &bytes) in lengths.iter().enumerate() {
        outbox.room(bytes).unwrap().fill(n as u8);
        outbox.push(bytes, to);
    }
    assert!(sink.send(&mut outbox), "the socket has no room for so little");
}

/// Receives `count` datagrams; panics when that takes too long.
fn receive(source: &mut UdpSource, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut datagrams = Vec::new();
    let ends_at = clock::now() + LONG;
    while datagrams.len() < count {
        let left = ends_at.since(clock::now());
        assert!(!left.is_zero(), "waited too long; there are {}", datagrams.len());
        let messages = source.receive(|train| {
            datagrams.extend(train.datagrams().map(|bytes| (train.from, bytes.to_vec())));
        });
        if messages.unwrap() == 0 {
            wait::wait_readable(&[source.as_fd()], Some(left)).unwrap();
        }
    }
    assert_eq!(datagrams.len(), count);
    datagrams
}

fn assert_same(datagrams: &[(SocketAddr, Vec<u8>)], from: SocketAddr, lengths: &[usize]) {
    assert_eq!(datagrams.len(), lengths.len());
    for (n, ((sender, bytes), &length)) in datagrams.iter().zip(lengths).enumerate() {
        assert_eq!((*sender, bytes.len()), (from, length), "datagram {n}");
        assert!(bytes.iter().all(|&byte| byte == n as u8), "datagram {n}");
    }
}

/// Lengths of datagrams that form two trains with single datagrams between and after them.
fn mixed() -> Vec<usize> {
    [vec![1_200; 70], vec![300], vec![900; 3], vec![1, 1_400]].concat()
}

fn trains_arrive() {
    let (socket, mut sink, mut source) = on_loopback(UdpOptions::default(), 65_536);
    let (lengths, address) = (mixed(), socket.local_addr());
    send(&mut sink, address, &lengths);
    assert_same(&receive(&mut source, lengths.len()), address, &lengths);
    let (sent, received) = (sink.counters(), source.counters());
    assert_eq!((sent.datagrams, received.datagrams), (76, 76));
    assert_eq!((sent.dropped, sent.refused_trains), (0, 0));
    if socket.options().send_trains {
        // 53 datagrams of 1,200 bytes fill a message.
        assert_eq!((sent.messages, sent.calls), (4, 1));
    }
    if socket.options().send_trains && socket.options().receive_trains {
        assert_eq!(received.messages, 4);
    }
}

fn trains_cross_a_veth() {
    let pair = Pair::addressed();
    let any = || UdpSocket::bind("[::]:0".parse().unwrap(), UdpOptions::default());
    if !pair.near.has_ipv6() {
        return;
    }
    let (near, far) = (pair.near.run(any).unwrap().unwrap(), pair.far.run(any).unwrap().unwrap());
    let at = |ip, socket: &UdpSocket| SocketAddr::new(IpAddr::V4(ip), socket.local_addr().port());
    let (near_address, far_address) = (at(NEAR_ADDRESS, &near), at(FAR_ADDRESS, &far));
    let lengths = mixed();
    let (mut there, mut back) = (near.sink(), far.sink());
    send(&mut there, far_address, &lengths);
    assert_same(&receive(&mut far.source(), lengths.len()), near_address, &lengths);
    send(&mut back, near_address, &lengths);
    assert_same(&receive(&mut near.source(), lengths.len()), far_address, &lengths);
}

/// Sends trains that differ only in their ECN field, over both IP versions, from sockets for both and for IPv4.
fn ecn_fields_cross_a_veth() {
    let pair = Pair::addressed();
    let options = UdpOptions { receive_details: true, ..UdpOptions::default() };
    let bind = |address: &str| UdpSocket::bind(address.parse().unwrap(), options);
    let far = pair.far.run(|| UdpSocket::bind_any(0, options)).unwrap().unwrap();
    let port = far.local_addr().port();
    let both = far.local_addr().is_ipv6();
    let mut source = far.source();
    let senders: &[&str] = if both { &["0.0.0.0:0", "[::]:0"] } else { &["0.0.0.0:0"] };
    for sender in senders {
        let near = pair.near.run(|| bind(sender)).unwrap().unwrap();
        assert_ecn_fields_arrive(&near, SocketAddr::new(FAR_ADDRESS.into(), port), &mut source);
    }
    if both {
        let alone = pair.far.run(|| bind("[::1]:0")).unwrap().unwrap();
        assert_ecn_fields_arrive(&alone, alone.local_addr(), &mut alone.source());
    }
}

fn assert_ecn_fields_arrive(from: &UdpSocket, to: SocketAddr, source: &mut UdpSource) {
    const FIELDS: [u8; 7] = [2, 2, 3, 3, 1, 0, 2];
    let mut outbox = Outbox::new(1 << 14);
    for field in FIELDS {
        outbox.room(1_000).unwrap().fill(field);
        outbox.push_with_ecn(1_000, to, field);
    }
    assert!(from.sink().send(&mut outbox));
    let (mut fields, ends_at) = (Vec::new(), clock::now() + LONG);
    while fields.len() < FIELDS.len() {
        assert!(clock::now() < ends_at, "{fields:?} to {to}");
        wait::wait_readable(&[source.as_fd()], Some(LONG)).unwrap();
        let received = source.receive(|train| {
            assert!(train.bytes.iter().all(|&byte| byte == train.ecn), "to {to}: {}", train.ecn);
            fields.extend(train.datagrams().map(|_| train.ecn));
        });
        received.unwrap();
    }
    assert_eq!(fields, FIELDS, "to {to}");
}

fn without_trains() {
    let (socket, mut sink, mut source) = on_loopback(ALONE, 65_536);
    let (lengths, address) = (mixed(), socket.local_addr());
    send(&mut sink, address, &lengths);
    assert_same(&receive(&mut source, lengths.len()), address, &lengths);
    assert_eq!((sink.counters().messages, source.counters().messages), (76, 76));
    assert_eq!(sink.counters().calls, 3);
}

/// Datagrams longer than the MTU can be sent in fragments, but not as a train: the kernel refuses a train of
/// them.
fn refused_train() {
    let (socket, mut sink, mut source) = on_loopback(UdpOptions::default(), 1_280);
    if !socket.options().send_trains {
        return;
    }
    let (lengths, address) = ([1_400; 5], socket.local_addr());
    send(&mut sink, address, &lengths);
    assert_same(&receive(&mut source, lengths.len()), address, &lengths);
    let counters = sink.counters();
    assert_eq!((counters.refused_trains, counters.dropped), (1, 0));
    assert_eq!((counters.datagrams, counters.messages), (5, 5));
    // The error is EINVAL, or EMSGSIZE from newer kernels.
    assert!([22, 90].contains(&counters.last_refusal), "{}", counters.last_refusal);
}

/// Sends to two peers in turn from one socket. The route to one has an MTU of 1,280, that to the other of 1,500.
fn one_narrow_route() {
    const ROUNDS: usize = 3;
    let pair = Pair::addressed();
    pair.near.interface("lo").set_mtu(1_280).unwrap();
    let bind = |ip: Ipv4Addr| UdpSocket::bind(SocketAddr::new(ip.into(), 0), UdpOptions::default());
    let in_near = |ip| pair.near.run(|| bind(ip)).unwrap().unwrap();
    let (sender, narrow) = (in_near(Ipv4Addr::UNSPECIFIED), in_near(Ipv4Addr::LOCALHOST));
    let wide = pair.far.run(|| bind(FAR_ADDRESS)).unwrap().unwrap();
    if !sender.options().send_trains {
        return;
    }
    let (mut sink, mut sources) = (sender.sink(), [narrow.source(), wide.source()]);
    for _ in 0..ROUNDS {
        for (socket, source) in [&narrow, &wide].into_iter().zip(&mut sources) {
            send(&mut sink, socket.local_addr(), &[1_400; 5]);
            assert_eq!(receive(source, 5).len(), 5);
        }
    }
    let counters = sink.counters();
    assert_eq!((counters.refused_trains, counters.dropped), (1, 0));
    // Five messages to the narrow peer and one to the other, in each round.
    assert_eq!(counters.messages, ROUNDS as u64 * 6);
    assert!(sink.sends_trains());
}

fn no_route() {
    let (_socket, mut sink, _) = on_loopback(UdpOptions::default(), 65_536);
    send(&mut sink, "203.0.113.1:9".parse().unwrap(), &[100, 100]);
    let counters = sink.counters();
    assert_eq!((counters.dropped, counters.datagrams, counters.refused_trains), (2, 0, 0));
    assert!(sink.sends_trains());
}
