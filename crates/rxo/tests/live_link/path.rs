//! Tests of paths with a link whose MTU is smaller than both ends assume.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::thread;

use rxo::tcp::Statistics;

use crate::Test;
use crate::network::Row;

pub(crate) const TESTS: &[Test] = &[
    ("a_routers_word_lowers_the_segment_size", by_icmp),
    ("a_black_hole_is_found_without_a_word", by_timeouts),
];

fn pattern(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Sends `bytes` bytes to a Linux socket at `peer`, and asserts that it receives all of them. Returns the
/// statistics of the connection after that.
fn send(row: &Row, handle: &rxo::host::Handle, peer: SocketAddr, bytes: u32) -> Statistics {
    let listener = row.peer.run(|| TcpListener::bind(peer).unwrap()).unwrap();
    let receiver = thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all
    });
    let mut stream = handle.connect(peer).unwrap();
    stream.write_all(&pattern(bytes)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let all = receiver.join().unwrap();
    assert!(all == pattern(bytes), "{} of {bytes} bytes", all.len());
    stream.statistics()
}

/// Path MTU discovery of RFC 1191 and RFC 8201 works against Linux's routing.
fn by_icmp() {
    let row = Row::routed(1_300);
    let host = row.start(|_| {});
    let mut peers = vec![("10.2.0.2:7000", 1_300 - 40 - 12)];
    if row.peer.has_ipv6() {
        peers.push(("[fd02::2]:7000", 1_300 - 60 - 12));
    }
    for (peer, mss) in peers {
        let end = send(&row, &host.handle(), peer.parse().unwrap(), 3_000_000);
        assert_eq!(end.mss, mss, "{peer}: {end:?}");
        assert!(end.path.too_big_taken >= 1 && end.path.black_holes == 0, "{peer}: {end:?}");
    }
    let counters = host.stop().counters;
    assert!(counters.link.path_errors >= 1, "{:?}", counters.link);
}

/// Path MTU discovery of RFC 4821 works where a bridge drops frames that are too large for its next link,
/// without a message.
fn by_timeouts() {
    let row = Row::bridged(1_300);
    // The bridge passes large GSO frames on, whatever the size of their segments.
    let host = row.start(|config| config.tcp.large_send_bytes = 0);
    let end = send(&row, &host.handle(), "10.1.0.9:7000".parse().unwrap(), 300_000);
    assert_eq!(end.mss, 1_280 - 40 - 12, "{end:?}");
    assert!(end.path.black_holes == 1 && end.path.too_big_taken == 0, "{end:?}");
    host.stop().result.unwrap();
}
