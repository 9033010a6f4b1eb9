//! Tests that a Linux host resolves the addresses of rxo's host by ARP and neighbour discovery, and pings it.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, ipproto};
use rustix::net::{recv, sendto, socket};

use crate::Test;
use crate::network::Row;

pub(crate) const TESTS: &[Test] = &[
    ("linux_pings_it", linux_pings_it),
    ("a_link_that_goes_down_does_not_end_the_host", a_link_that_goes_down),
];

fn linux_pings_it() {
    let row = Row::routed(1_500);
    let host = row.start(|_| {});
    let mut addresses = vec!["10.1.0.2"];
    if row.peer.has_ipv6() {
        addresses.push("fd01::2");
    }
    for address in &addresses {
        for bytes in [0, 56, 1_400] {
            let ip = address.parse().unwrap();
            row.peer.run(|| ping(ip, bytes)).unwrap();
        }
    }
    let counters = host.stop().counters.link;
    let asked = 3 * addresses.len() as u64;
    assert_eq!((counters.echoes, counters.conflicts), (asked, 0), "{counters:?}");
    // The router had to resolve each address at least once.
    assert!(counters.answers >= addresses.len() as u64, "{counters:?}");
}

/// A link that goes down ends neither the host nor a connection over it.
fn a_link_that_goes_down() {
    let row = Row::routed(1_500);
    let host = row.start(|_| {});
    let listener = host.handle().listen("10.1.0.2:7".parse().unwrap(), 4).unwrap();
    let address = "10.1.0.2:7".parse::<SocketAddr>().unwrap();
    let mut stream = row.peer.run(|| TcpStream::connect(address).unwrap()).unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    let mut exchange = |byte: u8| {
        stream.write_all(&[byte]).unwrap();
        let mut seen = [0];
        accepted.read_exact(&mut seen).unwrap();
        assert_eq!(seen, [byte]);
    };
    exchange(1);
    let link = row.host.interface("a0");
    link.down().unwrap();
    // The host checks its device several times within this pause.
    thread::sleep(Duration::from_millis(400));
    assert!(host.is_running());
    link.up().unwrap();
    exchange(2);
    row.peer.run(|| ping("10.1.0.2".parse().unwrap(), 56)).unwrap();
    link.delete().unwrap();
    let ends_at = Instant::now() + Duration::from_secs(60);
    while host.is_running() && Instant::now() < ends_at {
        thread::sleep(Duration::from_millis(10));
    }
    let error = host.stop().result.unwrap_err().to_string();
    assert!(error.contains("packet:a0 has gone away"), "{error}");
}

/// Sends an echo request with `bytes` bytes of data, and waits for the reply with the same data.
fn ping(to: IpAddr, bytes: usize) {
    let (family, protocol, request, reply): (_, Protocol, u8, u8) = if to.is_ipv4() {
        (AddressFamily::INET, ipproto::ICMP, 8, 0)
    } else {
        (AddressFamily::INET6, ipproto::ICMPV6, 128, 129)
    };
    let socket = socket(family, SocketType::RAW, Some(protocol)).unwrap();
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(60))).unwrap();
    let mut message = vec![request, 0, 0, 0, 0x12, 0x34, 0, bytes as u8];
    message.extend((0..bytes).map(|at| at as u8));
    if to.is_ipv4() {
        let sum = checksum(&message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
    }
    sendto(&socket, &message, SendFlags::empty(), &SocketAddr::new(to, 0)).unwrap();
    let mut buffer = vec![0; 2_000];
    loop {
        let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())
            .unwrap_or_else(|error| panic!("no answer from {to} to {bytes} bytes: {error}"));
        // For IPv4 the system returns the IP header, too.
        let heard = &buffer[if to.is_ipv4() { 20 } else { 0 }..length];
        if heard[0] == reply && heard[4..] == message[4..] {
            return;
        }
    }
}

/// Computes the checksum of RFC 1071; the system computes it for ICMPv6 only.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}
