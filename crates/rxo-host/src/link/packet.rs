//! Parses a received frame once, for the gate and for the handlers after it.
//!
//! Separate so that the gate treats all kinds of packets in the same way.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::checksum::{
    Sum, Summer, pseudo_header, verify_ip_header, verify_tcp, verify_transport,
};
use rxo_wire::tcp::CHECKSUM_AT;
use rxo_wire::{
    ETHERNET_HEADER_BYTES, FlowKey, IpVersion, Offsets, PROTOCOL_ICMP, PROTOCOL_ICMPV6,
    PROTOCOL_IGMP, Parsed, Transport, ethertype,
};
use rxo_wire::{parse, parse_ip, udp};

use super::arp::Arp;
use super::discovery;
use super::frames::ETHERTYPE_ARP;
use super::gate::Receivers;
use super::groups::mld;

/// The content of a frame, by protocol.
#[derive(Clone, Copy, Debug)]
pub(super) enum Packet {
    /// A TCP segment.
    Segment(Parsed),
    /// An ICMP or ICMPv6 message, with its kind of receivers.
    Icmp(Parsed, Receivers),
    /// An IGMP message.
    Igmp(Parsed),
    /// A UDP datagram.
    Datagram(Parsed),
    /// An ARP packet.
    Arp(Arp),
    /// Any other frame; this host ignores it.
    Other,
}

impl Packet {
    /// Parses the frame `bytes`.
    pub(super) fn read(kind: LinkKind, bytes: &[u8]) -> Self {
        match kind {
            LinkKind::Ethernet if ethertype(bytes) == Some(ETHERTYPE_ARP) => {
                let arp = bytes.get(ETHERNET_HEADER_BYTES..).and_then(Arp::read);
                arp.map_or(Self::Other, Self::Arp)
            }
            LinkKind::Ethernet => parse(bytes).map_or(Self::Other, |ip| Self::of_ip(ip, bytes)),
            LinkKind::RawIp => parse_ip(bytes).map_or(Self::Other, |ip| Self::of_ip(ip, bytes)),
        }
    }

    fn of_ip(ip: Parsed, bytes: &[u8]) -> Self {
        match (ip.transport, ip.ip.version, message(&ip, bytes)) {
            (Transport::Tcp(_), ..) => Self::Segment(ip),
            (Transport::Udp(_), ..) => Self::Datagram(ip),
            (Transport::Other(PROTOCOL_ICMP), IpVersion::V4, _) => {
                Self::Icmp(ip, Receivers::OneHost)
            }
            (Transport::Other(PROTOCOL_IGMP), IpVersion::V4, _) => Self::Igmp(ip),
            (Transport::Other(PROTOCOL_ICMPV6), IpVersion::V6, [kind, ..]) => {
                Self::Icmp(ip, intended_receivers(*kind))
            }
            _ => Self::Other,
        }
    }

    /// Returns the addresses of the packet, and its kind of receivers. `None` if the packet has no IP addresses
    /// to check.
    pub(super) fn addressed(&self) -> Option<(&FlowKey, Receivers)> {
        match self {
            Self::Segment(ip) => Some((&ip.key, Receivers::Connection)),
            Self::Icmp(ip, meant) => Some((&ip.key, *meant)),
            Self::Igmp(ip) => Some((&ip.key, Receivers::Neighbours)),
            Self::Datagram(ip) if ip.key.destination().is_multicast() => {
                Some((&ip.key, Receivers::Connection))
            }
            Self::Datagram(ip) => Some((&ip.key, Receivers::OneHost)),
            Self::Arp(_) | Self::Other => None,
        }
    }

    /// Returns `true` if the checksums in `frame` are right.
    pub(super) fn is_right<B: AsRef<[u8]>>(&self, frame: &Frame<B>, summer: Summer) -> bool {
        let bytes = frame.bytes();
        match self {
            Self::Segment(ip) => is_segment_right(frame, &ip.key, ip.at, summer),
            Self::Icmp(ip, _) | Self::Igmp(ip) => {
                let message = message(ip, bytes);
                let pseudo = match ip.ip.version {
                    IpVersion::V4 => Sum::ZERO,
                    IpVersion::V6 => pseudo_header(&ip.key, PROTOCOL_ICMPV6, message.len() as u32),
                };
                ip.ip.checksum_ok && (pseudo + summer.sum(message)).is_valid()
            }
            Self::Datagram(ip) => {
                let is_trusted = frame
                    .checksum
                    .covers_payload(ip.at.transport as usize, udp::CHECKSUM_AT as u16);
                ip.ip.checksum_ok && (is_trusted || verify_transport(ip, bytes, summer))
            }
            Self::Arp(_) | Self::Other => true,
        }
    }
}

/// Returns `true` if the checksums of the segment in `frame` are right. Its headers are at `at`, and its flow
/// is `key`. The TCP checksum is computed unless the device has verified it.
pub(super) fn is_segment_right<B: AsRef<[u8]>>(
    frame: &Frame<B>,
    key: &FlowKey,
    at: Offsets,
    summer: Summer,
) -> bool {
    let bytes = frame.bytes();
    let is_trusted = frame.checksum.covers_payload(at.transport as usize, CHECKSUM_AT as u16);
    verify_ip_header(at, bytes) && (is_trusted || verify_tcp(key, at, bytes, summer))
}

/// Returns the kind of receivers of an ICMPv6 message of type `kind`.
fn intended_receivers(kind: u8) -> Receivers {
    if kind == mld::QUERY { Receivers::Neighbours } else { discovery::intended_receivers(kind) }
}

/// Returns the bytes after the IP header of the packet in the frame `bytes`.
pub(super) fn message<'a>(ip: &Parsed, bytes: &'a [u8]) -> &'a [u8] {
    bytes.get(ip.at.segment()).unwrap_or_default()
}
