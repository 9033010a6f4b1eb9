//! Sends segments as packets: segments large sends and expands templates, as a device would.

use std::collections::VecDeque;
use std::net::IpAddr;

use rxo_frame::Instant;
use rxo_tcp::Transmit;
use rxo_wire::build::{BuildError, Ipv4Header, Ipv6Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::{FlowKey, PROTOCOL_TCP, TcpFlags};

use super::Packet;
use super::endpoint::Endpoint;

impl Endpoint {
    /// Sends everything that may leave now, from the connection and from the outbox.
    pub(super) fn transmit_all(&mut self, now: Instant, left: &mut VecDeque<Packet>) {
        self.transmit(now, left);
        while self.hand_on(now) {
            self.transmit(now, left);
        }
    }

    /// Sends everything that the connection has to send now.
    fn transmit(&mut self, now: Instant, left: &mut VecDeque<Packet>) {
        let pair = self.tcp.pair();
        while let Some(transmit) = self.tcp.poll_transmit(now) {
            let packets = packets(&pair, &transmit);
            self.record.left(&transmit, packets.len() as u32, now);
            left.extend(packets.into_iter().map(|bytes| Packet { at: now, bytes }));
        }
    }
}

/// The packets of `transmit`.
pub(super) fn packets(pair: &FlowKey, transmit: &Transmit<'_>) -> Vec<Vec<u8>> {
    let header = transmit.header(pair);
    let text = transmit.payload.to_vec();
    let class = transmit.ecn.bits();
    let mut built = Vec::new();
    for (number, (part, is_last)) in parts(&text, transmit).enumerate() {
        let mut header = TcpHeader { seq: header.seq + at(&text, part), ..header };
        if !is_last {
            header.flags = header.flags.without(TcpFlags::FIN | TcpFlags::PSH);
        }
        if number > 0 {
            header.flags = header.flags.without(TcpFlags::CWR);
        }
        built.push(packet(pair, &header, part, class));
    }
    for later in transmit.later() {
        built.push(packet(pair, &later.header(pair), &[], class));
    }
    // A connection never sends more than fits into a packet, and nothing else can fail.
    built.into_iter().filter_map(Result::ok).collect()
}

/// Splits a send into segments, and says which is the last. Without payload there is one empty
/// segment.
fn parts<'a>(
    text: &'a [u8],
    transmit: &Transmit<'_>,
) -> impl Iterator<Item = (&'a [u8], bool)> + use<'a> {
    let size = transmit.gso_size.map_or(text.len().max(1), |size| usize::from(size.get()));
    let count = text.len().div_ceil(size).max(1);
    (0..count).map(move |number| {
        let end = text.len().min((number + 1) * size);
        (&text[number * size..end], number + 1 == count)
    })
}

/// Offset of `part` in `text`.
fn at(text: &[u8], part: &[u8]) -> u32 {
    (part.as_ptr() as usize - text.as_ptr() as usize) as u32
}

fn packet(
    pair: &FlowKey,
    tcp: &TcpHeader<'_>,
    text: &[u8],
    class: u8,
) -> Result<Vec<u8>, BuildError> {
    let segment_bytes = tcp.bytes() + text.len();
    match (pair.source(), pair.destination()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ip = Ipv4Header {
                source,
                destination,
                protocol: PROTOCOL_TCP,
                traffic_class: class,
                payload_bytes: segment_bytes,
                ..Ipv4Header::default()
            };
            let mut bytes = vec![0; ip.bytes() + segment_bytes];
            let segment = ip.write(&mut bytes)?;
            tcp.write(segment)?.copy_from_slice(text);
            write_tcp_checksum(segment, ip.pseudo_header(), Summer::portable())?;
            Ok(bytes)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                source,
                destination,
                next_header: PROTOCOL_TCP,
                traffic_class: class,
                payload_bytes: segment_bytes,
                ..Ipv6Header::default()
            };
            let mut bytes = vec![0; ip.bytes() + segment_bytes];
            let segment = ip.write(&mut bytes)?;
            tcp.write(segment)?.copy_from_slice(text);
            let pseudo = ip.pseudo_header(PROTOCOL_TCP, segment_bytes as u32);
            write_tcp_checksum(segment, pseudo, Summer::portable())?;
            Ok(bytes)
        }
        _ => Ok(Vec::new()),
    }
}
