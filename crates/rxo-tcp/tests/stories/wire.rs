//! From a connection to bytes and back: segments are built by `rxo-wire`, parsed, and processed by the other
//! side, for IPv4 and IPv6.

use rxo_frame::Instant;
use rxo_tcp::{Config, Connection, Ecn, Secret, Segment, State, Transmit};
use rxo_wire::build::{Ipv4Header, Ipv6Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::{FlowKey, SeqNumber, TcpFlags, parse_ip};

use crate::dsl::stream_byte;

/// Returns an IP packet as a device would send it.
fn packet(pair: &FlowKey, transmit: &Transmit<'_>) -> Vec<u8> {
    let text = transmit.payload.to_vec();
    packet_of(pair, &transmit.header(pair), &text, transmit.ecn.bits())
}

fn packet_of(pair: &FlowKey, tcp: &TcpHeader<'_>, text: &[u8], ecn: u8) -> Vec<u8> {
    let payload_bytes = tcp.bytes() + text.len();
    let mut bytes = vec![0; 40 + payload_bytes];
    let (rest, pseudo_header) = match (pair.source(), pair.destination()) {
        (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) => {
            bytes.truncate(20 + payload_bytes);
            let ip = Ipv4Header {
                source,
                destination,
                protocol: 6,
                traffic_class: ecn,
                payload_bytes,
                ..Ipv4Header::default()
            };
            (ip.write(&mut bytes), ip.pseudo_header())
        }
        (std::net::IpAddr::V6(source), std::net::IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                source,
                destination,
                next_header: 6,
                traffic_class: ecn,
                payload_bytes,
                ..Ipv6Header::default()
            };
            (ip.write(&mut bytes), ip.pseudo_header(6, payload_bytes as u32))
        }
        _ => panic!("addresses of two kinds"),
    };
    let segment = rest.expect("room for IP");
    tcp.write(segment).expect("room for TCP").copy_from_slice(text);
    write_tcp_checksum(segment, pseudo_header, Summer::portable()).expect("a header");
    bytes
}

/// Returns the sum of RFC 9293, section 3.1 over pseudo-header, header and text, word by word.
fn naive_sum(packet: &[u8], pair: &FlowKey) -> u32 {
    let (addresses, segment) = match pair.source() {
        std::net::IpAddr::V4(_) => (&packet[12..20], &packet[20..]),
        std::net::IpAddr::V6(_) => (&packet[8..40], &packet[40..]),
    };
    let mut summed = addresses.to_vec();
    summed.extend((segment.len() as u32).to_be_bytes());
    summed.extend([0, 6]);
    summed.extend(segment);
    if summed.len() % 2 == 1 {
        summed.push(0);
    }
    let words = summed.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    words
        .fold(0, |sum, word| (sum + word) % 0xffff + 0xffff * u32::from((sum + word) % 0xffff == 0))
}

/// Carries everything that leaves `from` to `to`. Returns the number of packets.
fn carry(
    pair: &FlowKey,
    from: &mut Connection<Vec<u8>>,
    to: &mut Connection<Vec<u8>>,
    now: Instant,
) -> usize {
    let mut count = 0;
    while let Some(transmit) = from.poll_transmit(now) {
        for one in core::iter::once(transmit).chain(transmit.later()) {
            let bytes = packet(pair, &one);
            let parsed = parse_ip(&bytes).expect("a packet");
            assert_eq!(parsed.key, *pair);
            assert_eq!(naive_sum(&bytes, pair), 0xffff, "the checksum");
            let segment = Segment::read(bytes, parsed.at, now).expect("a segment");
            assert_eq!(segment.ecn, one.ecn);
            to.on_arrival(now, segment.into());
            count += 1;
        }
    }
    count
}

fn exchange(there: FlowKey, back: FlowKey) {
    let config = Config { large_send_bytes: 0, ..Config::default() };
    let now = Instant::from_micros(1_000_000);
    let client = Connection::open_active(config.clone(), there, Secret([1, 2]), now);
    let server = Connection::open_passive(config, back, Secret([3, 4]));
    let (mut client, mut server) = (client.expect("settings"), server.expect("settings"));
    let data: Vec<u8> = (0..50_000).map(stream_byte).collect();
    assert_eq!(client.send(&data), Ok(data.len()));
    let mut read = Vec::new();
    while carry(&there, &mut client, &mut server, now) + carry(&back, &mut server, &mut client, now)
        > 0
    {
        let mut text = vec![0; 100_000];
        let bytes = server.receive(&mut text).unwrap_or(0);
        read.extend(&text[..bytes]);
    }
    assert_eq!([client.state(), server.state()], [State::Established; 2]);
    let agreed = client.statistics();
    assert!(agreed.timestamps && agreed.sack && agreed.ecn);
    // The rest waits for a delayed acknowledgement.
    assert!(read.len() > 48_000 && data.starts_with(&read), "{} bytes", read.len());
}

/// RFC 9293, section 3.9.1.1 (MUST-43, MUST-45): both addresses are given when the connection opens, and all
/// packets carry them. RFC 9293, section 3.1 (MUST-2): all packets carry a checksum.
#[test]
fn two_ends_talk_in_ipv4_packets() {
    exchange(FlowKey::v4(1, 2, 0x1388_0050, 0), FlowKey::v4(2, 1, 0x0050_1388, 0));
}

#[test]
fn two_ends_talk_in_ipv6_packets() {
    let mut there = [0x20; 32];
    let mut back = [0x20; 32];
    (there[15], back[31]) = (1, 1);
    exchange(FlowKey::v6(&there, 0x1388_0050, 0), FlowKey::v6(&back, 0x0050_1388, 0));
}

/// RFC 3168, section 5: the ECN field has two bits.
#[test]
fn the_ecn_field_is_two_bits() {
    for bits in 0..4 {
        assert_eq!(Ecn::from_traffic_class(0xfc | bits).bits(), bits);
    }
}

/// RFC 9293, section 3.8.5 (MUST-31): urgent data may have any length. It is read in sequence, completely and
/// once, wherever the pointer points: inside the segment, beyond its end (urgent data continues in the next
/// segments), at its first byte, or at the maximum.
#[test]
fn urgent_data_of_any_length_is_read_in_its_place() {
    let (ours, theirs) = (FlowKey::v4(1, 2, 0x1388_0050, 0), FlowKey::v4(2, 1, 0x0050_1388, 0));
    let now = Instant::from_micros(1_000_000);
    let mut tcp =
        Connection::open_active(Config::default(), ours, Secret([1, 2]), now).expect("settings");
    let syn = tcp.poll_transmit(now).expect("a SYN leaves").seq;
    let header = |seq: u32, flags, urgent| TcpHeader {
        source_port: theirs.source_port(),
        destination_port: theirs.destination_port(),
        seq: SeqNumber(seq),
        ack: syn + 1,
        flags,
        window: 60_000,
        urgent,
        options: &[],
    };
    let give = |tcp: &mut Connection<Vec<u8>>, header: TcpHeader<'_>, text: &[u8]| {
        let bytes = packet_of(&theirs, &header, text, 0);
        let parsed = parse_ip(&bytes).expect("a packet");
        let segment = Segment::read(bytes, parsed.at, now).expect("a segment");
        tcp.on_arrival(now, segment.into());
    };
    give(&mut tcp, header(0, TcpFlags::SYN | TcpFlags::ACK, 0), &[]);
    assert_eq!(tcp.state(), State::Established);
    let data: Vec<u8> = (0..20_000).map(stream_byte).collect();
    // The urgent data: 3,000 bytes at the first segment, then one byte, then 65,535, then none.
    let pointers = [3_000, 2_500, 2_000, 1_500, 1_000, 500, 1, 0, u16::MAX, 499, 500, 501];
    let urgent = TcpFlags::ACK | TcpFlags::URG;
    let mut seq = 1;
    for (text, pointer) in data.chunks(500).zip(pointers.iter().cycle()) {
        give(&mut tcp, header(seq, urgent, *pointer), text);
        while tcp.poll_transmit(now).is_some() {}
        seq += text.len() as u32;
    }
    let mut read = vec![0; 30_000];
    assert_eq!(tcp.receive(&mut read), Ok(data.len()));
    assert_eq!(read[..data.len()], data);
}
