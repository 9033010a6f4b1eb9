//! Compares the parser with another parser on the same packets.

use etherparse::{NetSlice, SlicedPacket, TcpSlice, TransportSlice, UdpSlice};
use proptest::prelude::*;
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{Ip, IpVersion, Parsed, Transport, parse};

use crate::packets::{Shape, any_shape};

fn same_ip(ip: &Ip, net: &NetSlice<'_>) -> Result<(), TestCaseError> {
    match net {
        NetSlice::Ipv4(v4) => {
            let header = v4.header();
            prop_assert_eq!(ip.version, IpVersion::V4);
            prop_assert_eq!(ip.hop_limit, header.ttl());
            prop_assert_eq!(ip.traffic_class, header.dcp().value() << 2 | header.ecn().value());
            prop_assert_eq!(ip.id, header.identification());
            prop_assert_eq!(ip.dont_fragment, header.dont_fragment());
            prop_assert_eq!(ip.has_options, !header.options().is_empty());
            // The other parser ignores the reserved bit and then accepts a wrong checksum; 0 and 0xffff in
            // the field are the same number.
            if !ip.reserved_bit {
                let checksum = header.to_header().calc_header_checksum();
                let is_right = header.header_checksum() % 0xffff == checksum % 0xffff;
                prop_assert_eq!(ip.checksum_ok, is_right);
            }
        }
        NetSlice::Ipv6(v6) => {
            let header = v6.header();
            prop_assert_eq!(ip.version, IpVersion::V6);
            prop_assert_eq!(ip.hop_limit, header.hop_limit());
            prop_assert_eq!(ip.traffic_class, header.traffic_class());
            prop_assert_eq!(ip.flow_label, header.flow_label().value());
            prop_assert_eq!(ip.has_options, !v6.extensions().is_empty());
        }
        other => return Err(TestCaseError::fail(format!("{other:?}"))),
    }
    Ok(())
}

fn same_tcp(frame: &[u8], parsed: &Parsed, tcp: &TcpSlice<'_>) -> Result<(), TestCaseError> {
    let Transport::Tcp(read) = parsed.transport else {
        return Err(TestCaseError::fail(format!("{:?}", parsed.transport)));
    };
    prop_assert_eq!(parsed.key.source_port(), tcp.source_port());
    prop_assert_eq!(parsed.key.destination_port(), tcp.destination_port());
    prop_assert_eq!(read.seq.0, tcp.sequence_number());
    prop_assert_eq!(read.ack.0, tcp.acknowledgment_number());
    prop_assert_eq!(read.window, tcp.window_size());
    prop_assert_eq!(read.urgent, tcp.urgent_pointer());
    prop_assert_eq!(read.checksum, tcp.checksum());
    let named =
        [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr()];
    for (bit, is_set) in named.into_iter().enumerate() {
        prop_assert_eq!(read.flags.bits() >> bit & 1 == 1, is_set, "bit {}", bit);
    }
    prop_assert_eq!(&frame[parsed.at.payload_range()], tcp.payload());
    Ok(())
}

fn same_udp(frame: &[u8], parsed: &Parsed, udp: &UdpSlice<'_>) -> Result<(), TestCaseError> {
    let Transport::Udp(read) = parsed.transport else {
        return Err(TestCaseError::fail(format!("{:?}", parsed.transport)));
    };
    prop_assert_eq!(parsed.key.source_port(), udp.source_port());
    prop_assert_eq!(parsed.key.destination_port(), udp.destination_port());
    prop_assert_eq!((read.length, read.checksum), (udp.length(), udp.checksum()));
    let end = parsed.at.transport as usize + usize::from(read.length);
    prop_assert_eq!(&frame[parsed.at.payload as usize..end], udp.payload());
    Ok(())
}

/// Returns the checksum of the packet that `other` parsed, as it would write it.
fn checksum_of(other: &SlicedPacket<'_>) -> Option<u16> {
    match (other.net.as_ref()?, other.transport.as_ref()?) {
        (NetSlice::Ipv4(ip), TransportSlice::Tcp(tcp)) => {
            tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination()).ok()
        }
        (NetSlice::Ipv6(ip), TransportSlice::Tcp(tcp)) => {
            tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination()).ok()
        }
        _ => None,
    }
}

fn same(frame: &[u8], parsed: &Parsed, other: &SlicedPacket<'_>) -> Result<(), TestCaseError> {
    let ids: Vec<_> = other.vlan_ids().iter().map(|id| id.value()).collect();
    let read: Vec<_> = parsed.vlans.tags().iter().map(|tci| tci & 0x0fff).collect();
    prop_assert_eq!(read, ids);
    match &other.net {
        Some(net) => same_ip(&parsed.ip, net)?,
        None => return Err(TestCaseError::fail("no IP header")),
    }
    match &other.transport {
        Some(TransportSlice::Tcp(tcp)) => same_tcp(frame, parsed, tcp)?,
        Some(TransportSlice::Udp(udp)) => same_udp(frame, parsed, udp)?,
        _ => return Err(TestCaseError::fail("no transport header")),
    }
    if let (Some(checksum), Transport::Tcp(tcp)) = (checksum_of(other), parsed.transport) {
        // In one's complement, 0 and 0xffff in the field are the same number.
        let is_right = checksum % 0xffff == tcp.checksum % 0xffff;
        prop_assert_eq!(verify_transport(parsed, frame, Summer::detect()), is_right);
    }
    Ok(())
}

/// Removes what the other parser rejects by stricter rules: repeated or unordered extension headers, options
/// inside them, and meaningless TCP options.
fn tame(shape: Shape) -> Shape {
    let mut extensions = shape.extensions;
    extensions.sort_by_key(|extension| if extension.0 == 60 { 0 } else { 1 });
    extensions.dedup_by_key(|extension| extension.0);
    Shape { extensions, ..shape }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn it_reads_every_valid_packet_the_same(shape in any_shape().prop_map(tame)) {
        let frame = shape.frame();
        let parsed = parse(&frame).map_err(|_| TestCaseError::fail("not readable"))?;
        let other = SlicedPacket::from_ethernet(&frame)
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        same(&frame, &parsed, &other)?;
    }

    #[test]
    fn it_reads_damaged_packets_the_same_when_both_read_them(
        shape in any_shape().prop_map(tame),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut frame = shape.frame();
        let at = 14 + 4 * shape.tags.len() + at.index(60);
        if at < frame.len() {
            frame[at] = byte;
        }
        let (Ok(parsed), Ok(other)) = (parse(&frame), SlicedPacket::from_ethernet(&frame)) else {
            return Ok(());
        };
        let has_ports = matches!(parsed.transport, Transport::Tcp(_) | Transport::Udp(_));
        if has_ports && other.transport.is_some() {
            same(&frame, &parsed, &other)?;
        }
    }
}
