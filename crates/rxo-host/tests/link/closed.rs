//! UDP datagrams: every port is closed (RFC 1122, section 4.1.3.1; RFC 4443, section 3.1).

use std::net::Ipv6Addr;

use crate::peer::*;

/// Returns a datagram for port 443 without a checksum, which IPv4 allows.
fn datagram(to: &str, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len() as u16).to_be_bytes();
    let udp = [&[0x30, 0x39, 1, 187][..], &length, &[0, 0], payload].concat();
    ipv4(17, "10.0.0.9", to, &udp)
}

fn datagram6(payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len() as u16).to_be_bytes();
    let mut udp = [&[0x30, 0x39, 1, 187][..], &length, &[0, 0], payload].concat();
    let [from, to] = [9, 2].map(|host| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host).octets());
    let pseudo = [&from[..], &to, &[0, 0], &length, &[0, 0, 0, 17], &udp].concat();
    let sum = checksum(&pseudo);
    udp[6..8].copy_from_slice(&sum);
    ipv6(17, 64, "fd00::9", "fd00::2", &udp)
}

#[test]
fn a_datagram_is_answered_by_port_unreachable_and_quoted() {
    for (bytes, quoted_bytes) in [(0, 28), (100, 128), (1_400, 548)] {
        let packet = datagram("10.0.0.2", &vec![7; bytes]);
        let rest = [&[0; 4][..], &packet[..quoted_bytes]].concat();
        let expected = ethernet(PEER, OURS, 0x0800, &icmp("10.0.0.2", "10.0.0.9", 3, 3, &rest));
        let mut link = link();
        // The padding of a short frame is not quoted.
        let frame = [&ethernet(OURS, PEER, 0x0800, &packet)[..], &[0; 18]].concat();
        assert_eq!(answers(&mut link, &frame, at(0)), [expected], "{bytes}");
        assert_eq!((link.counters().closed_ports, link.counters().ignored), (1, 0));
    }
    for (bytes, quoted_bytes) in [(10, 58), (1_400, 1_232)] {
        let packet = datagram6(&vec![7; bytes]);
        let rest = [&[0; 4][..], &packet[..quoted_bytes]].concat();
        let expected = icmpv6(64, "fd00::2", "fd00::9", (1, 4), &rest);
        let expected = ethernet(PEER, OURS, 0x86dd, &expected);
        let frame = ethernet(OURS, PEER, 0x86dd, &packet);
        assert_eq!(answers(&mut link(), &frame, at(0)), [expected], "{bytes}");
    }
}

/// RFC 1122, section 3.2.2: datagrams to groups or broadcasts, or from invalid sources, cause no error.
#[test]
fn what_must_have_no_error_has_none() {
    let v4 = |to: Mac, packet: &[u8]| ethernet(to, PEER, 0x0800, packet);
    let from = |source: &str| ipv4(17, source, "10.0.0.2", &[0, 1, 0, 2, 0, 8, 0, 0]);
    let wrong_sum = ipv4(17, "10.0.0.9", "10.0.0.2", &[0, 1, 0, 2, 0, 8, 1, 1]);
    let mut fragment = datagram("10.0.0.2", &[7; 100]);
    (fragment[6], fragment[7]) = (0x20, 0);
    let sum = {
        fragment[10..12].fill(0);
        checksum(&fragment[..20])
    };
    fragment[10..12].copy_from_slice(&sum);
    let rows = [
        v4(ALL, &datagram("10.0.0.255", b"x")),
        v4(ALL, &datagram("255.255.255.255", b"x")),
        v4(ALL, &datagram("10.0.0.2", b"x")),
        v4([1, 0, 0x5e, 0, 0, 1], &datagram("224.0.0.1", b"x")),
        v4(OURS, &datagram("10.0.0.3", b"x")),
        v4(OURS, &from("224.0.0.1")),
        v4(OURS, &from("0.0.0.0")),
        v4(OURS, &from("127.0.0.1")),
        v4(OURS, &from("10.0.0.2")),
        v4(OURS, &wrong_sum),
        v4(OURS, &fragment),
        v4(PEER, &datagram("10.0.0.2", b"x")),
    ];
    assert_unanswered(&rows);
}

#[test]
fn a_flood_of_datagrams_is_answered_in_part() {
    let mut link = link();
    let frame = ethernet(OURS, PEER, 0x0800, &datagram("10.0.0.2", b"x"));
    let answered: usize = (0..5_000).map(|_| answers(&mut link, &frame, at(0)).len()).sum();
    assert_eq!((answered, link.counters().held_back), (20, 4_980));
    let answered: usize = (0..5_000).map(|_| answers(&mut link, &frame, at(100)).len()).sum();
    assert_eq!(answered, 10);
}
