//! Tests with packets from the builder, and invalid ones.

use rxo_frame::{Frame, Instant, LinkKind};

use super::{Fault, Reading, read};
use crate::seg;

#[test]
fn what_the_builder_wrote_is_read_back() {
    for packet in [seg().vlan(5), seg().v6().extension(60, &[1, 4, 0, 0, 0, 0]), seg().raw_ip()] {
        let packet = packet.seq(7).ack(9).window(11).ts(1, 2).psh().len(33);
        let Reading::Segment(segment) = read(&packet.frame(), packet.link) else {
            panic!("{packet:?} was not read")
        };
        assert!(segment.ip_checksum_ok && segment.checksum_ok, "{packet:?}");
        assert_eq!((segment.seq, segment.ack, segment.window), (7, 9, 11));
        assert_eq!((segment.payload.len(), segment.flags), (33, 0x18));
        assert_eq!(segment.options[..4], [1, 1, 8, 10]);
    }
}

#[test]
fn fragments_and_lies_show_their_addresses_only() {
    let broken = [
        seg().length_lie(1),
        seg().header_lie(-1),
        seg().offset_lie(-1),
        seg().len(0).offset_lie(1),
        seg().v6().cut(1),
    ];
    for packet in broken {
        let reading = read(&packet.frame(), LinkKind::Ethernet);
        assert!(matches!(reading, Reading::Addresses(..)), "{packet:?}: {reading:?}");
    }
    for packet in [seg().fragment(0, true), seg().v6().fragment(0, false)] {
        let reading = read(&packet.frame(), LinkKind::Ethernet);
        assert!(matches!(reading, Reading::Fragment(_)), "{packet:?}: {reading:?}");
    }
}

#[test]
fn a_fragment_header_behind_the_end_is_a_length_that_lies() {
    let mut bytes = vec![0; 137];
    // Version 6 with a payload of one byte; hop-by-hop options of 8 bytes, then a fragment header.
    (bytes[0], bytes[5], bytes[40]) = (0x60, 1, 44);
    let reading = read(&Frame::new(bytes, Instant::ZERO), LinkKind::RawIp);
    assert!(matches!(reading, Reading::Addresses(..)), "{reading:?}");
}

#[test]
fn padding_is_not_payload() {
    let Reading::Segment(segment) = read(&seg().len(1).padded().frame(), LinkKind::Ethernet) else {
        panic!("not read")
    };
    assert_eq!(segment.payload.len(), 1);
}

#[test]
fn headers_that_hide_tcp_or_its_addresses_are_told_from_plain_ones() {
    let read_v6 =
        |kind, body: &[u8]| read(&seg().v6().extension(kind, body).frame(), LinkKind::Ethernet);
    for kind in [135, 139, 140, 253] {
        assert!(matches!(read_v6(kind, &[]), Reading::Unknown(_)), "{kind}");
    }
    let odd = |kind, body: &[u8]| match read_v6(kind, body) {
        Reading::Segment(segment) => segment.odd_extensions,
        other => panic!("{kind} is {other:?}"),
    };
    assert!(!odd(0, &[5, 2, 0, 0]) && !odd(60, &[1, 4, 0, 0, 0, 0]));
    assert!(odd(43, &[0, 1]) && odd(43, &[0, 0]) && odd(60, &[0, 201, 16]) && odd(60, &[1, 99]));
    assert_eq!(read_v6(58, &[]), Reading::OtherProtocol);
}

#[test]
fn what_is_wrong_is_told() {
    let fault = |packet: crate::Packet| match read(&packet.frame(), LinkKind::Ethernet) {
        Reading::Nothing(fault) | Reading::Addresses(_, fault) => fault,
        other => panic!("{packet:?} is {other:?}"),
    };
    assert_eq!(fault(crate::arp()), Fault::NotIp);
    assert_eq!(fault(seg().cut(1)), Fault::Truncated);
    assert_eq!(fault(seg().v6().length_lie(1)), Fault::Truncated);
    assert_eq!(fault(seg().header_lie(-1)), Fault::Malformed);
    assert_eq!(fault(seg().offset_lie(-1)), Fault::Malformed);
}
