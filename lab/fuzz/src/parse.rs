//! Target `parse`: any bytes can be parsed, all offsets lie inside them, and the fields are those
//! of a
//! naive reader.

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_testkit::naive::{self, Fault, Reading, Segment};
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{Malformed, Parsed, Transport, Unparsed};

/// Reads `data` as an Ethernet frame and as a raw packet.
///
/// # Panics
/// If an offset leaves the frame, offsets are out of order, or a field is wrong.
pub fn run(data: &[u8]) {
    check(data, rxo_wire::parse(data), LinkKind::Ethernet);
    check(data, rxo_wire::parse_ip(data), LinkKind::RawIp);
}

fn check(frame: &[u8], read: Result<Parsed, Unparsed>, link: LinkKind) {
    if let Ok(parsed) = &read {
        assert!(parsed.at.network <= parsed.at.transport, "network behind transport: {parsed:?}");
        assert!(parsed.at.transport <= parsed.at.payload, "transport behind payload: {parsed:?}");
        assert!(parsed.at.payload <= parsed.at.end, "payload behind the end: {parsed:?}");
        assert!(parsed.at.end as usize <= frame.len(), "the end leaves the frame: {parsed:?}");
        assert!(parsed.vlans.tags().len() <= 2, "more than two tags: {parsed:?}");
    }
    match (naive::read(&Frame::new(frame, Instant::ZERO), link), read) {
        (Reading::Segment(segment), Ok(parsed)) => check_segment(frame, &parsed, &segment),
        (Reading::Datagram(datagram), Ok(parsed)) => check_datagram(&parsed, &datagram),
        (Reading::OtherProtocol, Ok(parsed)) => {
            assert!(matches!(parsed.transport, Transport::Other(_)));
            assert!(!parsed.transport.may_hide_tcp());
        }
        (Reading::Unknown(_), Ok(parsed)) => {
            assert!(
                matches!(parsed.transport, Transport::Other(_)) && parsed.transport.may_hide_tcp()
            );
        }
        (Reading::Fragment(_), Ok(parsed)) => assert_eq!(parsed.transport, Transport::Fragment),
        (Reading::Addresses(_, fault), Err(unparsed)) => {
            assert!(unparsed.addresses.is_some());
            assert_eq!(fault_of(unparsed.why), fault);
        }
        (Reading::Nothing(fault), Err(unparsed)) => {
            assert_eq!((unparsed.addresses, fault_of(unparsed.why)), (None, fault));
        }
        (naive, read) => panic!("{read:?} is {naive:?} to a naive reader"),
    }
}

fn fault_of(why: Malformed) -> Fault {
    match why {
        Malformed::NotIp => Fault::NotIp,
        Malformed::Truncated => Fault::Truncated,
        Malformed::Version | Malformed::Length => Fault::Malformed,
    }
}

fn check_datagram(parsed: &Parsed, datagram: &Segment) {
    let Transport::Udp(udp) = parsed.transport else { panic!("{parsed:?} is {datagram:?}") };
    let at = (parsed.at.network, parsed.at.transport, parsed.at.payload);
    let (network, transport) = (datagram.network_at as u32, datagram.transport_at as u32);
    assert_eq!(at, (network, transport, datagram.payload_at as u32));
    assert_eq!((parsed.key.source_port(), parsed.key.destination_port()), datagram.ports);
    assert_eq!(Some(usize::from(udp.length)), datagram.udp_length);
    assert_eq!(udp.checksum, datagram.checksum);
}

fn check_segment(frame: &[u8], parsed: &Parsed, segment: &Segment) {
    let Transport::Tcp(tcp) = parsed.transport else { panic!("{parsed:?} is {segment:?}") };
    let at = (parsed.at.network, parsed.at.transport, parsed.at.payload);
    let (network, transport) = (segment.network_at as u32, segment.transport_at as u32);
    assert_eq!(at, (network, transport, segment.payload_at as u32));
    assert_eq!(parsed.payload_bytes() as usize, segment.payload.len());
    assert_eq!((parsed.key.source_port(), parsed.key.destination_port()), segment.ports);
    assert_eq!((tcp.seq.0, tcp.ack.0, tcp.window), (segment.seq, segment.ack, segment.window));
    assert_eq!((tcp.flags.bits(), tcp.urgent), (segment.flags, segment.urgent));
    let ip = &parsed.ip;
    assert_eq!((ip.traffic_class, ip.hop_limit), (segment.traffic_class, segment.hop_limit));
    assert_eq!((ip.id, ip.flow_label), (segment.id, segment.flow_label));
    assert_eq!((ip.dont_fragment, ip.reserved_bit), (segment.dont_fragment, segment.reserved_bit));
    assert_eq!(ip.checksum_ok, segment.ip_checksum_ok);
    assert_eq!(ip.has_odd_extensions, segment.odd_extensions);
    let is_right = verify_transport(parsed, frame, Summer::portable());
    assert_eq!(is_right, segment.checksum_ok, "the checksum of {segment:?}");
}
