//! Converts segments of a script to packets and back.

use std::net::IpAddr;

use rxo_wire::build::{BuildError, Ipv4Header, Ipv6Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::{FlowKey, SeqNumber, Transport, parse_ip};

use crate::script::{Mark, Segment, SegmentOption};

/// Builds a packet from `segment` with real numbers, with payload from `pattern`.
pub(super) fn build(
    pair: &FlowKey,
    segment: &Segment,
    pattern: u32,
) -> Result<Vec<u8>, BuildError> {
    let text: Vec<u8> =
        (0..segment.text_bytes).map(|at| pattern_byte(pattern.wrapping_add(at))).collect();
    let options = option_bytes(segment.options.as_deref().unwrap_or_default());
    let tcp = TcpHeader {
        source_port: pair.source_port(),
        destination_port: pair.destination_port(),
        seq: SeqNumber(segment.seq),
        ack: SeqNumber(segment.ack.unwrap_or(0)),
        flags: segment.flags,
        window: segment.window.unwrap_or(0),
        urgent: segment.urgent,
        options: &options,
    };
    let class = segment.ecn.map_or(0, bits);
    let segment_bytes = tcp.bytes() + text.len();
    let mut bytes;
    let (payload, pseudo) = match (pair.source(), pair.destination()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ip = Ipv4Header {
                source,
                destination,
                protocol: 6,
                traffic_class: class,
                payload_bytes: segment_bytes,
                ..Ipv4Header::default()
            };
            bytes = vec![0; ip.bytes() + segment_bytes];
            (ip.write(&mut bytes)?, ip.pseudo_header())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                source,
                destination,
                next_header: 6,
                traffic_class: class,
                payload_bytes: segment_bytes,
                ..Ipv6Header::default()
            };
            bytes = vec![0; ip.bytes() + segment_bytes];
            (ip.write(&mut bytes)?, ip.pseudo_header(6, segment_bytes as u32))
        }
        _ => return Ok(Vec::new()),
    };
    tcp.write(payload)?.copy_from_slice(&text);
    write_tcp_checksum(payload, pseudo, Summer::portable())?;
    Ok(bytes)
}

/// A sent segment: its flow, its script form with real numbers, and its payload.
#[derive(Clone, Debug)]
pub(super) struct Seen<'a> {
    pub(super) key: FlowKey,
    pub(super) segment: Segment,
    pub(super) text: &'a [u8],
}

/// Parses a packet; `None` if it is not TCP or a checksum is wrong.
pub(super) fn read(packet: &[u8]) -> Option<Seen<'_>> {
    let parsed = parse_ip(packet).ok()?;
    let Transport::Tcp(tcp) = parsed.transport else { return None };
    if !parsed.ip.checksum_ok || !verify_transport(&parsed, packet, Summer::portable()) {
        return None;
    }
    let text = packet.get(parsed.at.payload_range())?;
    let options = options(packet.get(parsed.at.tcp_options())?);
    let flags = rxo_wire::TcpFlags::from_bits(tcp.flags.bits() & FLAG_BITS);
    let has_ack = flags.contains(rxo_wire::TcpFlags::ACK);
    let segment = Segment {
        ecn: Some(mark(parsed.ip.traffic_class)),
        flags,
        seq: tcp.seq.0,
        text_bytes: text.len() as u32,
        ack: has_ack.then_some(tcp.ack.0),
        window: Some(tcp.window),
        urgent: tcp.urgent,
        options: Some(options),
    };
    Some(Seen { key: parsed.key, segment, text })
}

/// Returns the byte at offset `at` of every stream.
pub(super) const fn pattern_byte(at: u32) -> u8 {
    (at ^ at >> 8 ^ at >> 16) as u8
}

fn bits(mark: Mark) -> u8 {
    match mark {
        Mark::NotCapable => 0,
        Mark::Capable1 => 1,
        Mark::Capable0 | Mark::Capable => 2,
        Mark::Congestion => 3,
    }
}

fn mark(class: u8) -> Mark {
    match class & 3 {
        0 => Mark::NotCapable,
        1 => Mark::Capable1,
        2 => Mark::Capable0,
        _ => Mark::Congestion,
    }
}

/// Encodes `options`, padded with end-of-list bytes.
fn option_bytes(options: &[SegmentOption]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        match option {
            SegmentOption::Nop => bytes.push(1),
            SegmentOption::End => bytes.push(0),
            SegmentOption::MaximumSegmentSize(size) => {
                bytes.extend([2, 4]);
                bytes.extend(size.to_be_bytes());
            }
            SegmentOption::WindowScale(shift) => bytes.extend([3, 3, *shift]),
            SegmentOption::SackPermitted => bytes.extend([4, 2]),
            SegmentOption::Sack(blocks) => {
                bytes.extend([5, (2 + 8 * blocks.len()) as u8]);
                for (start, end) in blocks {
                    bytes.extend(start.to_be_bytes());
                    bytes.extend(end.to_be_bytes());
                }
            }
            SegmentOption::Timestamp { value, echo } => {
                bytes.extend([8, 10]);
                bytes.extend(value.to_be_bytes());
                bytes.extend(echo.to_be_bytes());
            }
            SegmentOption::Other(kind) => bytes.extend([*kind, 2]),
        }
    }
    bytes
}

/// Parses options with their padding, because scripts name it.
fn options(mut bytes: &[u8]) -> Vec<SegmentOption> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        let (option, next) = match (kind, rest) {
            (0, _) => (SegmentOption::End, rest),
            (1, _) => (SegmentOption::Nop, rest),
            (kind, [length, ..]) => {
                let data = rest.get(1..usize::from(*length).saturating_sub(1));
                let Some(data) = data else { break };
                (option(*kind, data), &rest[1 + data.len()..])
            }
            _ => break,
        };
        options.push(option);
        bytes = next;
    }
    options
}

fn option(kind: u8, data: &[u8]) -> SegmentOption {
    let word = |at: usize| {
        let bytes = data.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    };
    match (kind, data) {
        (2, &[high, low]) => SegmentOption::MaximumSegmentSize(u16::from_be_bytes([high, low])),
        (3, &[shift]) => SegmentOption::WindowScale(shift),
        (4, []) => SegmentOption::SackPermitted,
        (5, _) => {
            let blocks = (0..data.len() / 8).map(|block| (word(8 * block), word(8 * block + 4)));
            SegmentOption::Sack(blocks.collect())
        }
        (8, _) => SegmentOption::Timestamp { value: word(0), echo: word(4) },
        _ => SegmentOption::Other(kind),
    }
}

/// The flag bits of the TCP header, without the data offset.
const FLAG_BITS: u16 = 0x0fff;
