//! The properties of a packet that are counted, parsed once.
//!
//! This parsing is separate from the engine's own parsing, because it needs other fields, and is done once for
//! all engines of a study.

use rxo_frame::{LinkKind, VlanTag};
use rxo_wire::tcp::{CHECKSUM_AT, OptionLayout};
use rxo_wire::{
    ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, Malformed, Offsets, Parsed,
    Plain, TcpFlags, TcpSegment, Transport, Unparsed, ethertype, parse, parse_ip, plain_v4,
    plain_v6, udp,
};

use crate::report::Protocol;

/// A captured packet, with the fields that a study counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    /// A TCP segment or a UDP datagram.
    Segment(Segment),
    /// Another IP packet, or an IP packet of which only the addresses are readable. Its ports are 0.
    Ip(FlowKey),
    /// A packet that ends before the length in its IP header. Only the addresses of its flow are known.
    Short(FlowKey),
    /// A packet that is not IP, or unreadable.
    Other,
}

/// The properties of a TCP segment or a UDP datagram that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) key: FlowKey,
    pub(super) protocol: Protocol,
    /// The innermost VLAN identifier in the bytes; `None` without a tag.
    pub(super) vlan: Option<u16>,
    /// The offsets of the segment's headers and payload.
    pub(super) at: Offsets,
    /// `true` for a pure ACK: no payload, ACK set, and no SYN, FIN or RST. As in other analysers, PSH and the
    /// congestion flags do not matter.
    pub(super) is_pure_ack: bool,
    /// `true` if the segment has no flag except ACK and no TCP option except timestamps. Two such pure ACKs of
    /// a flow differ only in ACK number and window.
    pub(super) is_bare: bool,
}

impl PacketKind {
    /// Parses a frame.
    #[inline]
    pub(super) fn read(link: LinkKind, bytes: &[u8]) -> Self {
        match plain(link, bytes) {
            Some(segment) => Self::Segment(segment),
            None => Self::read_any(link, bytes),
        }
    }

    /// Returns the flow key; `None` if the packet is not IP or unreadable. The ports are 0 if only the
    /// addresses are known.
    pub(super) const fn key(&self) -> Option<&FlowKey> {
        match self {
            Self::Segment(segment) => Some(&segment.key),
            Self::Ip(key) | Self::Short(key) => Some(key),
            Self::Other => None,
        }
    }

    /// Sets the VLAN tag that a cooked frame (Linux `SLL`) has before the packet.
    #[inline]
    pub(super) fn on_vlan(mut self, tag: Option<VlanTag>) -> Self {
        if let Some(tag) = tag {
            let id = tag.tci & 0x0fff;
            match &mut self {
                Self::Segment(segment) => {
                    segment.key = segment.key.on_device_vlan(id);
                    segment.vlan = segment.vlan.or(Some(id));
                }
                Self::Ip(key) | Self::Short(key) => *key = key.on_device_vlan(id),
                Self::Other => {}
            }
        }
        self
    }

    #[inline(never)]
    fn read_any(link: LinkKind, bytes: &[u8]) -> Self {
        let parsed = link.read(bytes, parse, parse_ip);
        match parsed {
            Ok(parsed) => match parsed.transport {
                Transport::Tcp(tcp) => Self::Segment(segment(&parsed, &tcp)),
                Transport::Udp(_) => Self::Segment(datagram(&parsed)),
                Transport::Fragment | Transport::Other(_) => Self::Ip(parsed.key),
            },
            Err(Unparsed { why: Malformed::Truncated, addresses: Some(key) }) => Self::Short(key),
            Err(unparsed) => unparsed.addresses.map_or(Self::Other, Self::Ip),
        }
    }
}

#[inline]
fn plain(link: LinkKind, bytes: &[u8]) -> Option<Segment> {
    let (network, is_v4) = match link {
        LinkKind::Ethernet => match ethertype(bytes)? {
            ETHERTYPE_IPV4 => (ETHERNET_HEADER_BYTES, true),
            ETHERTYPE_IPV6 => (ETHERNET_HEADER_BYTES, false),
            _ => return None,
        },
        LinkKind::RawIp => (0, bytes.first()? >> 4 == 4),
    };
    let packet = bytes.get(network..)?;
    let (plain, ip_bytes) =
        if is_v4 { (plain_v4(packet, 0)?, 20) } else { (plain_v6(packet, 0)?, 40) };
    let Plain { key, header_bytes, payload_bytes, .. } = plain;
    let network = network as u32;
    let payload = network + header_bytes;
    Some(Segment {
        key,
        protocol: Protocol::Tcp,
        vlan: None,
        at: Offsets {
            network,
            transport: network + ip_bytes,
            payload,
            end: payload + payload_bytes,
        },
        is_pure_ack: payload_bytes == 0,
        is_bare: true,
    })
}

fn datagram(parsed: &Parsed) -> Segment {
    Segment {
        key: parsed.key,
        protocol: Protocol::Udp,
        vlan: parsed.vlans.tags().last().map(|tag| tag & 0x0fff),
        at: parsed.at,
        is_pure_ack: false,
        is_bare: false,
    }
}

fn segment(parsed: &Parsed, tcp: &TcpSegment) -> Segment {
    Segment {
        protocol: Protocol::Tcp,
        key: parsed.key,
        vlan: parsed.vlans.tags().last().map(|tag| tag & 0x0fff),
        at: parsed.at,
        is_pure_ack: parsed.payload_bytes() == 0 && is_acknowledgement(tcp.flags),
        is_bare: tcp.flags == TcpFlags::ACK
            && matches!(
                tcp.options,
                OptionLayout::None | OptionLayout::AlignedTimestamp | OptionLayout::Timestamp
            ),
    }
}

const fn is_acknowledgement(flags: TcpFlags) -> bool {
    const DECISIVE: u16 =
        TcpFlags::ACK.bits() | TcpFlags::SYN.bits() | TcpFlags::FIN.bits() | TcpFlags::RST.bits();
    flags.bits() & DECISIVE == TcpFlags::ACK.bits()
}

impl Segment {
    /// Returns the 16-bit field at offset `at` of the TCP or UDP header.
    #[inline]
    fn word(&self, bytes: &[u8], at: usize) -> u16 {
        let field = bytes.get(self.at.transport as usize + at..);
        field.and_then(|rest| rest.first_chunk()).map_or(0, |word| u16::from_be_bytes(*word))
    }

    /// Returns the sequence number of the TCP segment (SEG.SEQ).
    #[inline]
    pub(super) fn seq(&self, bytes: &[u8]) -> u32 {
        u32::from(self.word(bytes, 4)) << 16 | u32::from(self.word(bytes, 6))
    }

    /// Returns the identification of the IPv4 header; `None` for IPv6.
    #[inline]
    pub(super) fn identification(&self, bytes: &[u8]) -> Option<u16> {
        let header = bytes.get(self.at.network as usize..)?.first_chunk::<6>()?;
        (header[0] >> 4 == 4).then(|| u16::from_be_bytes([header[4], header[5]]))
    }

    /// Returns `true` if the SYN flag of the TCP segment is set.
    #[inline]
    pub(super) fn is_syn(&self, bytes: &[u8]) -> bool {
        self.word(bytes, 12) & TcpFlags::SYN.bits() != 0
    }

    /// Returns the acknowledgement number of the TCP segment (SEG.ACK).
    #[inline]
    pub(super) fn ack(&self, bytes: &[u8]) -> u32 {
        u32::from(self.word(bytes, 8)) << 16 | u32::from(self.word(bytes, 10))
    }

    /// Returns the window field of the TCP segment (SEG.WND), unscaled.
    #[inline]
    pub(super) fn window(&self, bytes: &[u8]) -> u16 {
        self.word(bytes, 14)
    }

    /// Returns the destination port of the TCP or UDP header.
    #[inline]
    pub(super) fn destination_port(&self, bytes: &[u8]) -> u16 {
        self.word(bytes, 2)
    }

    /// Returns the hop limit (TTL) of the packet's IP header.
    #[inline]
    pub(super) fn hops(&self, bytes: &[u8]) -> u8 {
        let header = bytes.get(self.at.network as usize..).unwrap_or_default();
        let is_v4 = header.first().is_some_and(|byte| byte >> 4 == 4);
        header.get(if is_v4 { 8 } else { 7 }).copied().unwrap_or(u8::MAX)
    }

    /// Returns the offset of the checksum in the TCP or UDP header, in bytes.
    pub(super) const fn checksum_at(&self) -> usize {
        match self.protocol {
            Protocol::Tcp => CHECKSUM_AT,
            Protocol::Udp => udp::CHECKSUM_AT,
        }
    }

    /// Returns the checksum field of the TCP or UDP header.
    #[inline]
    pub(super) fn checksum(&self, bytes: &[u8]) -> u16 {
        self.word(bytes, self.checksum_at())
    }
}

#[cfg(test)]
mod tests {
    use rxo_testkit::{Packet, arp, seg, udp};

    use super::*;

    fn tcp(packet: Packet) -> (Segment, Vec<u8>) {
        let bytes = packet.bytes();
        match PacketKind::read(LinkKind::Ethernet, &bytes) {
            PacketKind::Segment(segment) => (segment, bytes),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_short_and_the_full_reading_agree() {
        for packet in [
            seg(),
            seg().ts(1, 2),
            seg().pure_ack(),
            seg().v6(),
            seg().v6().ts(3, 4).len(1000),
            seg().pure_ack().padded(),
        ] {
            let bytes = packet.bytes();
            let short = plain(LinkKind::Ethernet, &bytes).map(PacketKind::Segment);
            assert_eq!(short, Some(PacketKind::read_any(LinkKind::Ethernet, &bytes)), "{packet:?}");
        }
    }

    #[test]
    fn fields_are_those_of_the_header() {
        let (segment, bytes) = tcp(seg().vlan(7).ack(0x1234_5678).window(99).len(5).psh());
        assert_eq!((segment.ack(&bytes), segment.window(&bytes)), (0x1234_5678, 99));
        assert_eq!(
            (segment.vlan, segment.at.payload_bytes(), segment.at.segment_bytes()),
            (Some(7), 5, 25)
        );
    }

    #[test]
    fn an_acknowledgement_without_payload_is_a_pure_ack_whatever_psh_says() {
        let rows = [
            (seg().pure_ack(), true, true),
            (seg().pure_ack().ts(1, 2), true, true),
            (seg().pure_ack().sack(&[(1, 2)]), true, false),
            (seg().pure_ack().psh(), true, false),
            (seg().pure_ack().ece(), true, false),
            (seg().pure_ack().fin(), false, false),
            (seg().pure_ack().syn(), false, false),
            (seg().pure_ack().rst(), false, false),
            (seg().pure_ack().no_ack(), false, false),
            (seg().len(1), false, true),
        ];
        for (packet, is_pure_ack, is_bare) in rows {
            let (segment, _) = tcp(packet.clone());
            assert_eq!(
                (segment.is_pure_ack, segment.is_bare),
                (is_pure_ack, is_bare),
                "{packet:?}"
            );
        }
    }

    #[test]
    fn a_datagram_has_payload_and_no_acknowledgement() {
        let bytes = udp().len(30).bytes();
        let PacketKind::Segment(datagram) = PacketKind::read(LinkKind::Ethernet, &bytes) else {
            panic!()
        };
        assert_eq!((datagram.protocol, datagram.at.payload_bytes()), (Protocol::Udp, 30));
        assert!(!datagram.is_pure_ack && !datagram.is_bare && datagram.checksum(&bytes) != 0);
    }

    #[test]
    fn what_is_neither_tcp_nor_udp_is_told_apart() {
        let read = |packet: Packet| PacketKind::read(LinkKind::Ethernet, &packet.bytes());
        assert!(
            matches!(read(seg().fragment(0, true)), PacketKind::Ip(key) if key.source_port() == 0)
        );
        assert_eq!(read(arp()), PacketKind::Other);
        assert_eq!(PacketKind::read(LinkKind::RawIp, &[]), PacketKind::Other);
    }
}
