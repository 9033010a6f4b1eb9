//! Builds the frames that the link itself sends: ARP, ICMP, IGMP and MLD.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rxo_wire::build::{EthernetHeader, Ipv4Header, Ipv6Header};
use rxo_wire::checksum::{Sum, Summer, pseudo_header};
use rxo_wire::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_IGMP,
};

use super::neighbours::Mac;

/// The EtherType of ARP.
pub(crate) const ETHERTYPE_ARP: u16 = 0x0806;
pub(super) const BROADCAST: Mac = [0xff; 6];

/// The Ethernet and IP header values of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    /// Source and destination Ethernet addresses; `None` if frames begin with the IP header.
    pub(super) macs: Option<(Mac, Mac)>,
    /// The time to live (IPv4) or hop limit (IPv6) of the packet.
    pub(super) hop_limit: u8,
    /// The type of service (IPv4) or traffic class (IPv6) of the packet.
    pub(super) traffic_class: u8,
}

impl Envelope {
    /// Builds an ICMP or ICMPv6 packet with `message`, and writes its checksum. `None` if the packet would be
    /// too long for IP, or if the addresses are of different IP versions.
    pub(super) fn icmp(&self, from: IpAddr, to: IpAddr, message: &[u8]) -> Option<Vec<u8>> {
        match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => self.icmpv4(from, to, message),
            (IpAddr::V6(from), IpAddr::V6(to)) => self.icmpv6(from, to, message),
            _ => None,
        }
    }

    fn icmpv4(&self, source: Ipv4Addr, destination: Ipv4Addr, message: &[u8]) -> Option<Vec<u8>> {
        let ip = Ipv4Header {
            source,
            destination,
            protocol: PROTOCOL_ICMP,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            payload_bytes: message.len(),
            ..Ipv4Header::default()
        };
        self.ipv4(&ip, message)
    }

    /// Builds an IGMP packet with `message` and a Router Alert option (RFC 2113), and writes its checksum.
    /// Returns `None` in the same cases as [`Envelope::icmp`].
    pub(super) fn igmp(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        message: &[u8],
    ) -> Option<Vec<u8>> {
        let ip = Ipv4Header {
            source,
            destination,
            protocol: PROTOCOL_IGMP,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            options: &IPV4_ROUTER_ALERT,
            payload_bytes: message.len(),
            ..Ipv4Header::default()
        };
        self.ipv4(&ip, message)
    }

    fn ipv4(&self, ip: &Ipv4Header<'_>, message: &[u8]) -> Option<Vec<u8>> {
        let mut frame = self.start(ETHERTYPE_IPV4, ip.bytes(), message)?;
        let packet = frame.get_mut(self.link_bytes()..)?;
        put(ip.write(packet).ok()?, message, Sum::ZERO)?;
        Some(frame)
    }

    /// Builds an ICMPv6 packet of multicast listener discovery with `message` and a Router Alert option (RFC
    /// 2711), and writes its checksum. Returns `None` in the same cases as [`Envelope::icmp`].
    pub(super) fn mld(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        message: &[u8],
    ) -> Option<Vec<u8>> {
        let ip = Ipv6Header {
            source,
            destination,
            next_header: HOP_BY_HOP,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            payload_bytes: IPV6_ROUTER_ALERT.len() + message.len(),
            ..Ipv6Header::default()
        };
        let header_bytes = ip.bytes() + IPV6_ROUTER_ALERT.len();
        let mut frame = self.start(ETHERTYPE_IPV6, header_bytes, message)?;
        let packet = frame.get_mut(self.link_bytes()..)?;
        let (options, rest) =
            ip.write(packet).ok()?.split_at_mut_checked(IPV6_ROUTER_ALERT.len())?;
        options.copy_from_slice(&IPV6_ROUTER_ALERT);
        put(rest, message, pseudo_of(source, destination, message)?)?;
        Some(frame)
    }

    fn icmpv6(&self, source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> Option<Vec<u8>> {
        let ip = Ipv6Header {
            source,
            destination,
            next_header: PROTOCOL_ICMPV6,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            payload_bytes: message.len(),
            ..Ipv6Header::default()
        };
        let mut frame = self.start(ETHERTYPE_IPV6, ip.bytes(), message)?;
        let packet = frame.get_mut(self.link_bytes()..)?;
        put(ip.write(packet).ok()?, message, pseudo_of(source, destination, message)?)?;
        Some(frame)
    }

    fn start(&self, ethertype: u16, ip_bytes: usize, message: &[u8]) -> Option<Vec<u8>> {
        let mut frame = vec![0; self.link_bytes() + ip_bytes + message.len()];
        if let Some((source, destination)) = self.macs {
            let header = EthernetHeader { destination, source, tags: &[], ethertype };
            header.write(&mut frame).ok()?;
        }
        Some(frame)
    }

    const fn link_bytes(&self) -> usize {
        if self.macs.is_some() { rxo_wire::ETHERNET_HEADER_BYTES } else { 0 }
    }
}

/// Builds an ARP frame from `source` to `destination`. `None` if the header cannot be written.
pub(super) fn arp(source: Mac, destination: Mac, packet: &[u8]) -> Option<Vec<u8>> {
    let header = EthernetHeader { destination, source, tags: &[], ethertype: ETHERTYPE_ARP };
    let mut frame = vec![0; header.bytes() + packet.len()];
    header.write(&mut frame).ok()?.copy_from_slice(packet);
    Some(frame)
}

/// Returns the flow key of packets from `source` to `destination`; the upper 16 bits of `ports` are the
/// source port. `None` if the IP versions differ.
pub(super) fn key_of(source: IpAddr, destination: IpAddr, ports: u32) -> Option<FlowKey> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            Some(FlowKey::v4(source.to_bits(), destination.to_bits(), ports, 0))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut addresses = [0; 32];
            addresses[..16].copy_from_slice(&source.octets());
            addresses[16..].copy_from_slice(&destination.octets());
            Some(FlowKey::v6(&addresses, ports, 0))
        }
        _ => None,
    }
}

/// Returns the checksum of the pseudo-header for the ICMPv6 `message`; `None` if the message is too long.
fn pseudo_of(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> Option<Sum> {
    let key = key_of(source.into(), destination.into(), 0)?;
    Some(pseudo_header(&key, PROTOCOL_ICMPV6, u32::try_from(message.len()).ok()?))
}

fn put(out: &mut [u8], message: &[u8], pseudo: Sum) -> Option<()> {
    out.copy_from_slice(message);
    out.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2)?.fill(0);
    let checksum = (pseudo + Summer::portable().sum(out)).checksum();
    out.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// The Router Alert option with the value "examine packet" (RFC 2113, section 2.1).
const IPV4_ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];
const HOP_BY_HOP: u8 = 0;
/// A hop-by-hop options header: next header ICMPv6; a Router Alert for MLD (RFC 2711, section 2.1); padding.
const IPV6_ROUTER_ALERT: [u8; 8] = [PROTOCOL_ICMPV6, 0, 5, 2, 0, 0, 1, 0];
/// The offset of the checksum in every ICMP and IGMP message, in bytes.
const CHECKSUM_AT: usize = 2;
