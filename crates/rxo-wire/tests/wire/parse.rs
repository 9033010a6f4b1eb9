//! Tests of single frames.

use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{Malformed, Parsed, TcpFlags, Transport, parse, parse_ip};

use crate::packets::Shape;

fn why(frame: &[u8]) -> Malformed {
    parse(frame).unwrap_err().why
}

fn payload<'a>(parsed: &Parsed, frame: &'a [u8]) -> &'a [u8] {
    &frame[parsed.at.payload_range()]
}

#[test]
fn padding_is_not_payload() {
    let frame = Shape { payload: b"x".to_vec(), padding: 5, ..Shape::default() }.frame();
    let parsed = parse(&frame).unwrap();
    assert_eq!(frame.len(), 60);
    assert_eq!(payload(&parsed, &frame), b"x");
    assert_eq!(parsed.payload_bytes(), 1);
    assert!(verify_transport(&parsed, &frame, Summer::detect()), "padding is not summed");
}

#[test]
fn two_tags_are_read_and_a_third_is_not_ip() {
    let tags = vec![(0x88a8, 0x2064), (0x8100, 0x0fff)];
    let frame = Shape { tags, ..Shape::default() }.frame();
    let parsed = parse(&frame).unwrap();
    assert_eq!(parsed.vlans.depth(), 2);
    assert_eq!(parsed.vlans.tags(), [0x2064, 0x0fff]);
    assert_eq!(parsed.at.network, 14 + 8);

    let frame = Shape { tags: vec![(0x8100, 1); 3], ..Shape::default() }.frame();
    assert_eq!(why(&frame), Malformed::NotIp);
}

#[test]
fn arp_is_not_ip_and_nothing_is_wrong_with_it() {
    let mut frame = [0; 42];
    frame[12..14].copy_from_slice(&[0x08, 0x06]);
    let unparsed = parse(&frame).unwrap_err();
    assert_eq!((unparsed.why, unparsed.addresses), (Malformed::NotIp, None));
}

#[test]
fn every_cut_of_a_frame_is_truncated_and_keeps_its_addresses_once_they_are_there() {
    for is_v6 in [false, true] {
        let shape = Shape { is_v6, ..Shape::default() };
        let frame = shape.frame();
        let whole = parse(&frame).unwrap();
        for length in 0..frame.len() {
            let unparsed = parse(&frame[..length]).unwrap_err();
            assert_eq!(unparsed.why, Malformed::Truncated, "{length} bytes");
            match unparsed.addresses {
                Some(key) => assert!(key.has_addresses_of(&whole.key)),
                None => assert!(length < 14 + shape.ip_header_bytes()),
            }
        }
    }
}

#[test]
fn a_version_that_contradicts_the_link_layer_is_told() {
    for (is_v6, first) in [(false, 0x65), (true, 0x45)] {
        let mut frame = Shape { is_v6, ..Shape::default() }.frame();
        frame[14] = first;
        assert_eq!(why(&frame), Malformed::Version);
    }
    assert_eq!(parse_ip(&[0x50; 40]).unwrap_err().why, Malformed::Version);
    assert_eq!(parse_ip(&[]).unwrap_err().why, Malformed::Truncated);
}

#[test]
fn lengths_that_contradict_each_other_are_told() {
    let lie = |at: usize, value: u8| {
        let mut frame = Shape::default().frame();
        frame[at] = value;
        why(&frame)
    };
    assert_eq!(lie(14, 0x44), Malformed::Length, "an IP header below 20 bytes");
    assert_eq!(lie(17, 19), Malformed::Length, "a packet shorter than its header");
    assert_eq!(lie(17, 255), Malformed::Truncated, "a packet longer than the frame");
    assert_eq!(lie(46, 0x40), Malformed::Length, "a TCP header below 20 bytes");
    assert_eq!(lie(46, 0xf0), Malformed::Length, "a TCP header longer than the packet");
    let mut frame = Shape { is_udp: true, ..Shape::default() }.frame();
    frame[39] = 7;
    assert_eq!(why(&frame), Malformed::Length, "a datagram below 8 bytes");
    frame[39] = 200;
    assert_eq!(why(&frame), Malformed::Length, "a datagram longer than its packet");
}

/// Unknown IP options are skipped, and the data after them is read as if there were no options (RFC 9293,
/// section 3.9.2 (MUST-50)).
#[test]
fn unknown_ip_options_are_passed_over() {
    let plain = parse(&Shape::default().frame()).unwrap();
    let record_route = [7, 7, 4, 0, 0, 0, 0, 0];
    let unknown = [0x9e, 6, 1, 2, 3, 4, 1, 0x1f, 4, 9, 9, 0];
    for ip_options in [record_route.to_vec(), unknown.to_vec(), vec![0xff; 40]] {
        let shape = Shape { ip_options, ..Shape::default() };
        let frame = shape.frame();
        let parsed = parse(&frame).unwrap();
        assert_eq!((parsed.key, parsed.transport), (plain.key, plain.transport));
        let text = |parsed: &Parsed, frame: &[u8]| frame[parsed.at.payload_range()].to_vec();
        assert_eq!(text(&parsed, &frame), text(&plain, &Shape::default().frame()));
        assert!(parsed.ip.checksum_ok && parsed.ip.has_options);
    }
}

/// A wrong IP checksum is found with and without IP options, which the checksum covers.
#[test]
fn a_wrong_ip_checksum_is_seen_with_and_without_options() {
    for ip_options in [vec![], vec![1; 40], vec![1; 4]] {
        let mut packet = Shape { ip_options, ..Shape::default() }.packet();
        assert!(parse_ip(&packet).unwrap().ip.checksum_ok);
        packet[8] ^= 0x10;
        assert!(!parse_ip(&packet).unwrap().ip.checksum_ok);
        packet[8] ^= 0x10;
        // The header checksum covers the reserved bit.
        packet[6] ^= 0x80;
        assert!(!parse_ip(&packet).unwrap().ip.checksum_ok);
    }
}

#[test]
fn fragments_show_no_ports_first_or_not() {
    for fragment in [0x2000, 0x2001, 0x0001, 0x6000] {
        let parsed = parse(&Shape { fragment, ..Shape::default() }.frame()).unwrap();
        assert_eq!(parsed.transport, Transport::Fragment);
        assert_eq!((parsed.key.source_port(), parsed.key.destination_port()), (0, 0));
        let whole = parse(&Shape::default().frame()).unwrap();
        assert!(parsed.key.has_addresses_of(&whole.key));
    }
    let v6 = Shape { is_v6: true, extensions: vec![(44, vec![0; 6])], ..Shape::default() };
    assert_eq!(parse(&v6.frame()).unwrap().transport, Transport::Fragment);
    for (fragment, dont_fragment, reserved) in [(0, false, false), (0xc000, true, true)] {
        let parsed = parse(&Shape { fragment, ..Shape::default() }.frame()).unwrap();
        assert!(matches!(parsed.transport, Transport::Tcp(_)));
        assert_eq!((parsed.ip.dont_fragment, parsed.ip.reserved_bit), (dont_fragment, reserved));
    }
}

#[test]
fn eight_extension_headers_are_walked_and_a_ninth_is_not() {
    let with = |count| {
        let extensions = vec![(60, vec![0; 6]); count];
        parse(&Shape { is_v6: true, extensions, ..Shape::default() }.frame())
    };
    for count in 0..=8 {
        let parsed = with(count).unwrap();
        assert_eq!(parsed.at.transport as usize, 14 + 40 + 8 * count);
        assert_eq!(parsed.ip.has_options, count > 0);
    }
    let unparsed = with(9).unwrap_err();
    assert_eq!(unparsed.why, Malformed::Length);
    assert!(unparsed.addresses.is_some());
}

#[test]
fn an_extension_header_that_runs_over_the_packet_is_a_lie() {
    let shape = Shape { is_v6: true, extensions: vec![(0, vec![0; 6])], ..Shape::default() };
    let mut frame = Shape { padding: 600, ..shape }.frame();
    frame[14 + 41] = 9;
    assert_eq!(why(&frame), Malformed::Length, "even when the frame has bytes there");
}

#[test]
fn an_authentication_header_counts_in_words() {
    let mut packet =
        Shape { is_v6: true, extensions: vec![(51, vec![0; 22])], ..Shape::default() }.packet();
    packet[41] = 4;
    assert_eq!(parse_ip(&packet).unwrap().at.transport, 40 + 24);
}

/// The verification of the checksum fails if any bit is damaged (RFC 9293, section 3.1 (MUST-3)).
#[test]
fn a_damaged_bit_anywhere_fails_verification() {
    for is_v6 in [false, true] {
        for is_udp in [false, true] {
            let shape = Shape { is_v6, is_udp, ..Shape::default() };
            let frame = shape.frame();
            let parsed = parse(&frame).unwrap();
            for summer in Summer::available() {
                assert!(verify_transport(&parsed, &frame, summer), "{summer:?}");
                for at in 14 + shape.ip_header_bytes()..frame.len() {
                    let mut damaged = frame.clone();
                    damaged[at] ^= 0x20;
                    assert!(!verify_transport(&parsed, &damaged, summer), "byte {at}");
                }
            }
        }
    }
}

#[test]
fn a_udp_checksum_of_zero_is_none_for_ipv4_and_wrong_for_ipv6() {
    for (is_v6, right) in [(false, true), (true, false)] {
        let shape = Shape { is_v6, is_udp: true, ..Shape::default() };
        let mut packet = shape.packet();
        let at = shape.ip_header_bytes() + 6;
        packet[at..at + 2].fill(0);
        let parsed = parse_ip(&packet).unwrap();
        assert_eq!(verify_transport(&parsed, &packet, Summer::detect()), right);
    }
}

#[test]
fn what_cannot_be_checked_is_not_called_intact() {
    let fragment = Shape { fragment: 0x2000, ..Shape::default() }.packet();
    let parsed = parse_ip(&fragment).unwrap();
    assert!(!verify_transport(&parsed, &fragment, Summer::detect()));
    let whole = Shape::default().packet();
    let parsed = parse_ip(&whole).unwrap();
    assert!(!verify_transport(&parsed, &whole[..30], Summer::detect()), "not the frame parsed");
}

#[test]
fn flags_are_named_and_reserved_bits_kept() {
    let flags = TcpFlags::ACK | TcpFlags::AE | TcpFlags::RESERVED;
    let frame = Shape { flags: flags.bits(), ..Shape::default() }.frame();
    let Transport::Tcp(tcp) = parse(&frame).unwrap().transport else { panic!("not TCP") };
    assert_eq!(tcp.flags, flags);
    assert_eq!(format!("{flags:?}"), "ACK|AE|reserved");
    assert!(flags.contains(TcpFlags::ACK) && !flags.contains(TcpFlags::ACK | TcpFlags::FIN));
    assert!(flags.intersects(TcpFlags::ACK | TcpFlags::FIN));
    assert_eq!(flags.without(TcpFlags::RESERVED | TcpFlags::AE), TcpFlags::ACK);
}
