//! ICMP and ICMPv6 (RFC 792, RFC 4443): messages of a router or of the peer about a packet that we
//! sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rxo_wire::{FlowKey, PROTOCOL_ICMP, PROTOCOL_ICMPV6, Parsed, SeqNumber};

use super::{VirtualHost, flow_key};

impl VirtualHost {
    /// Processes a message; drops it if it is not about a segment of a connection here. The
    /// connection does the checks of RFC 5927.
    pub(super) fn deliver_message(&mut self, protocol: u8, packet: &[u8], parsed: &Parsed) {
        let bytes = packet.get(parsed.at.segment());
        let news = match (protocol, bytes) {
            (PROTOCOL_ICMP, Some(message)) => News::of_v4(message),
            (PROTOCOL_ICMPV6, Some(message)) => News::of_v6(message),
            _ => None,
        };
        let Some(News { pair, seq, what }) = news else { return };
        let now = self.now;
        let number = self.connection(&pair);
        let Some(endpoint) = number.and_then(|number| self.endpoints.get_mut(&number)) else {
            return;
        };
        match what {
            What::TooBig { mtu } => endpoint.tcp.on_packet_too_big(now, seq, mtu),
            What::Unreachable { is_hard } => endpoint.tcp.on_unreachable(seq, is_hard),
        }
    }
}

/// A message about one of our segments.
struct News {
    /// The direction of that segment.
    pair: FlowKey,
    seq: SeqNumber,
    what: What,
}

enum What {
    TooBig { mtu: u32 },
    Unreachable { is_hard: bool },
}

impl News {
    fn of_v4(message: &[u8]) -> Option<Self> {
        let (kind, code, mtu, quoted) = split(message)?;
        let what = match (kind, code) {
            (3, 4) => What::TooBig { mtu: mtu & 0xffff },
            (3, _) => What::Unreachable { is_hard: matches!(code, 2 | 3) },
            _ => return None,
        };
        let header_bytes = usize::from(quoted.first()? & 15) * 4;
        let address = |at: usize| {
            let octets: [u8; 4] = *quoted.get(at..)?.first_chunk()?;
            Some(IpAddr::V4(Ipv4Addr::from(octets)))
        };
        Self::about(what, address(12)?, address(16)?, quoted.get(header_bytes..)?)
    }

    /// Extension headers before TCP are not skipped, because this host sends none.
    fn of_v6(message: &[u8]) -> Option<Self> {
        let (kind, code, mtu, quoted) = split(message)?;
        let what = match kind {
            1 => What::Unreachable { is_hard: code == 4 },
            2 => What::TooBig { mtu },
            _ => return None,
        };
        let address = |at: usize| {
            let octets: [u8; 16] = *quoted.get(at..)?.first_chunk()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)))
        };
        Self::about(what, address(8)?, address(24)?, quoted.get(40..)?)
    }

    /// Reads a message about `segment`, which has at least the first 8 bytes of ours.
    fn about(what: What, source: IpAddr, destination: IpAddr, segment: &[u8]) -> Option<Self> {
        let [a, b, c, d, seq @ ..] = *segment.first_chunk::<8>()?;
        let local = SocketAddr::new(source, u16::from_be_bytes([a, b]));
        let peer = SocketAddr::new(destination, u16::from_be_bytes([c, d]));
        let seq = SeqNumber(u32::from_be_bytes(seq));
        Some(Self { pair: flow_key(local, peer), seq, what })
    }
}

/// Returns type, code, the number after the checksum, and the quoted packet.
fn split(message: &[u8]) -> Option<(u8, u8, u32, &[u8])> {
    let ([kind, code, _, _, number @ ..], quoted) = message.split_first_chunk::<8>()?;
    Some((*kind, *code, u32::from_be_bytes(*number), quoted))
}
