//! Tests against Linux with each set of negotiated options and each kind of network: every byte arrives, in
//! both directions.
//!
//! `RXO_INTEROP_BYTES` sets the number of bytes in each direction of each connection. Each case has two
//! connections, one opened by each side.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use rxo::device::middleware::{Displacement, ImpairmentSettings};
use rxo_testbed::{Lab, LabOptions, Namespace};

use crate::Test;
use crate::bad_network::BadNetwork;
use crate::network::Network;
use crate::streams::{by_host, by_peer, check, exchange, send};

pub(crate) const TESTS: &[Test] = &[
    ("ipv4_with_everything", || good(1500, &[], false)),
    ("ipv6_with_everything", || good(1500, &[], true)),
    ("without_timestamps", || good(1500, &[NO_TIMESTAMPS], false)),
    ("without_sack", || good(1500, &[NO_SACK], false)),
    ("without_window_scaling", || good(1500, &[NO_SCALING], false)),
    ("without_any_of_them", || good(1500, &[NO_TIMESTAMPS, NO_SACK, NO_SCALING], false)),
    ("segments_of_536_bytes", || good(576, &[], false)),
    ("segments_of_8960_bytes", || good(9000, &[], false)),
    ("segments_of_8940_bytes_over_ipv6", || good(9000, &[], true)),
    ("one_percent_is_lost", || bad(LOSS, &[])),
    ("one_percent_is_lost_without_sack", || bad(LOSS, &[NO_SACK])),
    ("one_percent_is_lost_without_timestamps", || bad(LOSS, &[NO_TIMESTAMPS])),
    ("five_percent_are_overtaken", || bad(REORDER, &[])),
    ("one_percent_comes_twice", || bad(DUPLICATE, &[])),
    ("ten_megabits_and_a_small_queue", || bad(SLOW, &[])),
    ("all_of_it_together", || bad(ALL, &[])),
    ("four_hundred_connections", four_hundred),
    ("resets_are_heard_both_ways", resets),
    ("a_listener_of_the_hosts_overflows", overflow),
];

const NO_TIMESTAMPS: (&str, &str) = ("net.ipv4.tcp_timestamps", "0");
const NO_SACK: (&str, &str) = ("net.ipv4.tcp_sack", "0");
const NO_SCALING: (&str, &str) = ("net.ipv4.tcp_window_scaling", "0");

const NONE: ImpairmentSettings = ImpairmentSettings {
    seed: 0,
    loss_ppm: 0,
    duplicate_ppm: 0,
    reorder_ppm: 0,
    displacement: Displacement { frames: Some(3), time: Duration::from_millis(10) },
    delay: Duration::from_micros(500),
    jitter: Duration::ZERO,
    gather: Duration::ZERO,
    rate_bytes_per_s: None,
    limit_frames: 4_096,
    limit_bytes: 64 << 20,
};
const LOSS: ImpairmentSettings = ImpairmentSettings { loss_ppm: 10_000, ..NONE };
const REORDER: ImpairmentSettings = ImpairmentSettings { reorder_ppm: 50_000, ..NONE };
const DUPLICATE: ImpairmentSettings = ImpairmentSettings { duplicate_ppm: 10_000, ..NONE };
const SLOW: ImpairmentSettings =
    ImpairmentSettings { rate_bytes_per_s: Some(1_250_000), limit_frames: 20, ..NONE };
const ALL: ImpairmentSettings = ImpairmentSettings {
    loss_ppm: 10_000,
    duplicate_ppm: 10_000,
    reorder_ppm: 50_000,
    rate_bytes_per_s: Some(1_250_000),
    limit_frames: 40,
    ..NONE
};

/// Returns the number of bytes in each direction: that of the environment variable, or `usual`.
fn bytes(usual: u64) -> u64 {
    std::env::var("RXO_INTEROP_BYTES").map_or(usual, |text| text.parse().unwrap())
}

fn addresses(is_v6: bool) -> (SocketAddr, SocketAddr) {
    let (peer, host) = (Lab::PEER_ADDRESSES, Lab::HOST_ADDRESSES);
    if is_v6 {
        (SocketAddr::new(peer.1.into(), 7000), SocketAddr::new(host.1.into(), 7001))
    } else {
        (SocketAddr::new(peer.0.into(), 7000), SocketAddr::new(host.0.into(), 7001))
    }
}

fn set(peer: &Namespace, sysctls: &[(&str, &str)]) {
    for (name, value) in sysctls {
        peer.set_sysctl(name, value).unwrap();
    }
}

fn good(mtu: u32, sysctls: &[(&str, &str)], is_v6: bool) {
    let options = LabOptions { mtu, ..LabOptions::default() };
    let network = Network::new(options, |_| {});
    let peer = network.lab.peer();
    assert!(!is_v6 || peer.has_ipv6(), "this machine has no IPv6 in private networks");
    set(peer, sysctls);
    let (there, here) = addresses(is_v6);
    let bytes = bytes(16_000_000);
    let (ours, theirs) = by_host(peer, &network.handle(), there);
    let agreed = ours.statistics();
    assert_eq!(agreed.timestamps, !sysctls.contains(&NO_TIMESTAMPS));
    assert_eq!(agreed.sack, !sysctls.contains(&NO_SACK));
    // Both sides announce the segment size that fits their link.
    let options_bytes = if agreed.timestamps { 12 } else { 0 };
    assert_eq!(agreed.mss, mtu - if is_v6 { 60 } else { 40 } - options_bytes);
    exchange(&ours, &theirs, 1, bytes);
    let (ours, theirs) = by_peer(peer, &network.handle(), here);
    exchange(&ours, &theirs, 3, bytes);
    drop((ours, theirs));
    network.ends_empty();
}

fn bad(settings: ImpairmentSettings, sysctls: &[(&str, &str)]) {
    let network = BadNetwork::new(LabOptions::default(), settings, |_| {});
    set(network.lab.peer(), sysctls);
    let (there, here) = addresses(false);
    let bytes = bytes(if settings.rate_bytes_per_s.is_some() { 1_000_000 } else { 4_000_000 });
    let peer = network.lab.peer();
    let (ours, theirs) = by_host(peer, &network.handle(), there);
    let (other_ours, other_theirs) = by_peer(peer, &network.handle(), here);
    thread::scope(|scope| {
        scope.spawn(|| exchange(&ours, &theirs, 1, bytes));
        exchange(&other_ours, &other_theirs, 3, bytes);
    });
    drop((ours, other_ours));
    network.ends_empty();
}

/// Each side opens half of the connections.
fn four_hundred() {
    let network = Network::new(LabOptions::default(), |_| {});
    let (there, here) = addresses(false);
    let (peer, handle) = (network.lab.peer(), network.handle());
    let theirs = peer.run(|| std::net::TcpListener::bind(there).unwrap()).unwrap();
    let ours = handle.listen(here, 256).unwrap();
    let connect = || (0..200).map(|_| TcpStream::connect(here).unwrap()).collect::<Vec<_>>();
    let mut pairs = Vec::new();
    thread::scope(|scope| {
        let connecting = scope.spawn(|| peer.run(connect).unwrap());
        let accepted: Vec<_> = (0..200).map(|_| ours.accept().unwrap()).collect();
        for stream in connecting.join().unwrap() {
            let address = stream.local_addr().unwrap();
            let (mine, _) = accepted.iter().find(|(_, from)| *from == address).unwrap();
            pairs.push((mine.clone(), stream));
        }
        for _ in 0..200 {
            let stream = handle.connect(there).unwrap();
            pairs.push((stream, theirs.accept().unwrap().0));
        }
    });
    thread::scope(|scope| {
        for (number, (ours, theirs)) in pairs.iter().enumerate() {
            let key = number as u64 * 2;
            thread::Builder::new()
                .stack_size(256 << 10)
                .spawn_scoped(scope, move || {
                    send(ours, key, 40_000);
                    check(ours, key + 1, 40_000);
                })
                .unwrap();
            thread::Builder::new()
                .stack_size(256 << 10)
                .spawn_scoped(scope, move || {
                    check(theirs, key, 40_000);
                    send(theirs, key + 1, 40_000);
                })
                .unwrap();
        }
    });
    drop(pairs);
    network.ends_empty();
}

fn resets() {
    let network = Network::new(LabOptions::default(), |_| {});
    let (there, here) = addresses(false);
    let (peer, handle) = (network.lab.peer(), network.handle());
    // Neither side has a listener.
    assert_eq!(handle.connect(there).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let refused = peer.run(|| TcpStream::connect(here).unwrap_err().kind()).unwrap();
    assert_eq!(refused, ErrorKind::ConnectionRefused);
    // The host aborts its connection, which resets it.
    let (ours, mut theirs) = by_host(peer, &handle, there);
    ours.abort();
    assert_eq!(theirs.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    // Linux resets the connection, because it closes a socket with unread data.
    let (mut ours, theirs) = by_peer(peer, &handle, here);
    ours.write_all(b"unread").unwrap();
    theirs.peek(&mut [0; 9]).unwrap();
    drop(theirs);
    assert_eq!(ours.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    network.ends_empty();
}

fn overflow() {
    let network = Network::new(LabOptions::default(), |_| {});
    let (_, here) = addresses(false);
    let (peer, handle) = (network.lab.peer(), network.handle());
    let listener = handle.listen(here, 4).unwrap();
    thread::scope(|scope| {
        let connect = || TcpStream::connect_timeout(&here, Duration::from_secs(60)).unwrap();
        for key in 0..12 {
            scope.spawn(move || {
                let stream = peer.run(connect).unwrap();
                send(&stream, key, 1_000);
                check(&stream, key + 100, 1_000);
            });
        }
        // Waits until more connections have arrived than the backlog can hold.
        thread::sleep(Duration::from_millis(100));
        for _ in 0..12 {
            let (stream, _) = listener.accept().unwrap();
            scope.spawn(move || {
                let key = key_of(&stream);
                check(&stream, key, 1_000);
                send(&stream, key + 100, 1_000);
            });
        }
    });
    network.ends_empty();
}

/// Returns the key of a stream, by which the twelve streams differ in their first bytes.
fn key_of(stream: &rxo::host::TcpStream) -> u64 {
    let mut first = [0; 8];
    while stream.peek(&mut first).unwrap() < 8 {
        thread::yield_now();
    }
    (0..12).find(|key| crate::streams::first_of(*key) == first).unwrap()
}
