//! Written headers are parsed and compared with the values they were written from.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::checksum::{Sum, Summer, verify_transport};
use crate::tcp::{OptionLayout, Timestamp};
use crate::{FlowKey, IpVersion, SeqNumber, TcpFlags, Transport, parse, parse_ip};

const TCP: u8 = 6;
const UDP: u8 = 17;

const V4: Ipv4Header<'_> = Ipv4Header {
    source: Ipv4Addr::new(192, 0, 2, 1),
    destination: Ipv4Addr::new(198, 51, 100, 7),
    protocol: TCP,
    traffic_class: 0x03,
    hop_limit: 9,
    id: 0x1234,
    fragment: Ipv4Header::DONT_FRAGMENT,
    options: &[],
    payload_bytes: 0,
};

#[test]
fn a_tagged_tcp_frame_reads_as_it_was_meant() {
    let timestamp = Timestamp { value: 0x0102_0304, echo: 0x0506_0708 };
    let options = timestamp_option(timestamp);
    let tcp = TcpHeader {
        source_port: 80,
        destination_port: 40_000,
        seq: SeqNumber(7),
        ack: SeqNumber(u32::MAX),
        flags: TcpFlags::ACK | TcpFlags::PSH,
        window: 501,
        urgent: 3,
        options: &options,
    };
    let ip = Ipv4Header { payload_bytes: tcp.bytes() + 3, ..V4 };
    let tags = [VlanTag { tpid: 0x88a8, tci: 0x6064 }, VlanTag { tpid: 0x8100, tci: 0x0007 }];
    let link = EthernetHeader { tags: &tags, ethertype: 0x0800, ..EthernetHeader::default() };
    let mut frame = vec![0xee; link.bytes() + ip.bytes() + tcp.bytes() + 3];

    let segment = ip.write(link.write(&mut frame).unwrap()).unwrap();
    tcp.write(segment).unwrap().copy_from_slice(b"abc");
    write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect()).unwrap();

    let parsed = parse(&frame).unwrap();
    assert_eq!(parsed.vlans.tags(), [0x6064, 0x0007]);
    assert_eq!(parsed.key.source(), IpAddr::V4(V4.source));
    assert_eq!(parsed.key.destination(), IpAddr::V4(V4.destination));
    assert_eq!((parsed.key.source_port(), parsed.key.destination_port()), (80, 40_000));
    assert_eq!((parsed.ip.traffic_class, parsed.ip.hop_limit, parsed.ip.id), (0x03, 9, 0x1234));
    assert!(parsed.ip.dont_fragment && parsed.ip.checksum_ok && !parsed.ip.has_options);
    assert_eq!(&frame[parsed.at.payload_range()], b"abc");
    let Transport::Tcp(read) = parsed.transport else { panic!("{:?}", parsed.transport) };
    assert_eq!((read.seq, read.ack, read.flags), (tcp.seq, tcp.ack, tcp.flags));
    assert_eq!((read.window, read.urgent), (501, 3));
    assert_eq!((read.options, read.timestamp), (OptionLayout::AlignedTimestamp, timestamp));
    assert!(verify_transport(&parsed, &frame, Summer::detect()));
}

#[test]
fn an_ipv6_udp_packet_with_extensions_reads_as_it_was_meant() {
    let udp = UdpHeader { source_port: 53, destination_port: 5353, payload_bytes: 4 };
    let hop_by_hop = Ipv6Extension { next_header: 60, data: &[5, 2, 0, 0] };
    let destination = Ipv6Extension { next_header: UDP, data: &[0; 14] };
    let datagram_bytes = udp.bytes() + 4;
    let ip = Ipv6Header {
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9),
        next_header: 0,
        traffic_class: 0xb8,
        flow_label: 0xfff1_2345,
        payload_bytes: hop_by_hop.bytes() + destination.bytes() + datagram_bytes,
        ..Ipv6Header::default()
    };
    let mut packet = vec![0xee; ip.bytes() + ip.payload_bytes];
    let rest = hop_by_hop.write(ip.write(&mut packet).unwrap()).unwrap();
    let datagram = destination.write(rest).unwrap();
    udp.write(datagram).unwrap().copy_from_slice(b"wire");
    let pseudo_header = ip.pseudo_header(UDP, datagram_bytes as u32);
    write_udp_checksum(datagram, pseudo_header, Summer::detect()).unwrap();

    let parsed = parse_ip(&packet).unwrap();
    assert_eq!(parsed.ip.version, IpVersion::V6);
    assert_eq!((parsed.ip.traffic_class, parsed.ip.flow_label), (0xb8, 0x1_2345));
    assert!(parsed.ip.has_options);
    assert_eq!(parsed.key.source(), IpAddr::V6(Ipv6Addr::LOCALHOST));
    assert_eq!(parsed.at.transport, 40 + 8 + 16);
    assert_eq!(&packet[parsed.at.payload as usize..], b"wire");
    assert!(verify_transport(&parsed, &packet, Summer::detect()));
    packet[70] ^= 1;
    assert!(!verify_transport(&parsed, &packet, Summer::detect()));
}

/// TCP options of odd length are padded with zeros (RFC 9293, section 3.1 (MUST-69)).
#[test]
fn odd_options_are_filled_up_with_zeros() {
    let tcp = TcpHeader { options: &[3, 3, 7], ..TcpHeader::default() };
    let mut segment = [0xee; 24];
    assert!(tcp.write(&mut segment).unwrap().is_empty());
    assert_eq!(segment[20..], [3, 3, 7, 0]);
    let ip = Ipv4Header { options: &[1], payload_bytes: 24, ..V4 };
    let mut packet = [0xee; 48];
    packet[24..].copy_from_slice(&segment);
    assert_eq!(ip.write(&mut packet).unwrap().len(), 24);
    let parsed = parse_ip(&packet).unwrap();
    assert!(parsed.ip.has_options && parsed.ip.checksum_ok);
    assert_eq!(parsed.at.transport, 24);
}

#[test]
fn a_seed_completes_to_the_checksum() {
    let tcp = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
    let ip = Ipv4Header { payload_bytes: 25, ..V4 };
    let mut segment = [0x5a; 25];
    tcp.write(&mut segment).unwrap();
    let mut whole = segment;
    write_tcp_checksum(&mut whole, ip.pseudo_header(), Summer::portable()).unwrap();
    write_tcp_seed(&mut segment, ip.pseudo_header()).unwrap();
    let completed = crate::checksum::complete(&segment, 0, 16, Summer::portable()).unwrap();
    assert_eq!(completed.to_be_bytes(), whole[16..18]);
    assert_eq!(
        ip.pseudo_header().fold(),
        crate::checksum::pseudo_header(
            &FlowKey::v4(V4.source.to_bits(), V4.destination.to_bits(), 0, 0),
            TCP,
            25
        )
        .fold()
    );
}

#[test]
fn a_udp_checksum_is_never_written_as_none() {
    // The pseudo-header is chosen so that the total sum is all ones.
    let mut datagram = [0, 1, 0, 2, 0, 8, 0, 0];
    let pseudo_header = Sum::word(0xffff - 11);
    write_udp_checksum(&mut datagram, pseudo_header, Summer::portable()).unwrap();
    assert_eq!(datagram[6..], [0xff, 0xff]);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let mut short: Vec<u8> = vec![0xee; 19];
    let no_room = |needed| Err(BuildError::NoRoom { needed, given: 19 });
    assert_eq!(V4.write(&mut short).map(|_| ()), no_room(20));
    assert_eq!(TcpHeader::default().write(&mut short).map(|_| ()), no_room(20));
    assert_eq!(Ipv6Header::default().write(&mut short).map(|_| ()), no_room(40));
    let tags = [VlanTag { tpid: 0x8100, tci: 1 }; 2];
    let link = EthernetHeader { tags: &tags, ..EthernetHeader::default() };
    assert_eq!(link.write(&mut short).map(|_| ()), no_room(22));
    assert!(short.iter().all(|byte| *byte == 0xee));
    let refused = write_tcp_checksum(&mut short[..17], Sum::ZERO, Summer::portable());
    assert_eq!(refused, Err(BuildError::NoRoom { needed: 18, given: 17 }));
}

#[test]
fn what_a_length_field_cannot_say_is_refused() {
    let mut room = vec![0; 3000];
    let long = [0; 41];
    let refused = BuildError::OptionsTooLong { bytes: 41 };
    assert_eq!(Ipv4Header { options: &long, ..V4 }.write(&mut room), Err(refused));
    assert_eq!(TcpHeader { options: &long, ..TcpHeader::default() }.write(&mut room), Err(refused));
    let extension = Ipv6Extension { next_header: TCP, data: &[0; 2047] };
    let refused = Err(BuildError::OptionsTooLong { bytes: 2047 });
    assert_eq!(extension.write(&mut room), refused);
    let ip = Ipv4Header { payload_bytes: 65_516, ..V4 };
    let refused = ip.write(&mut room).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a packet of 65536 bytes is longer than IP allows; send less at a time"
    );
    let ip = Ipv6Header { payload_bytes: 65_536, ..Ipv6Header::default() };
    assert!(ip.write(&mut room).is_err());
    let udp = UdpHeader { payload_bytes: usize::MAX, ..UdpHeader::default() };
    assert!(udp.write(&mut room).is_err());
    assert_eq!(maximum_segment_size_option(1460), [2, 4, 5, 0xb4]);
}
