//! Builds the frames that the link itself sends: ARP, ICMP, IGMP and MLD.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rxo_wire::build::{EthernetHeader, Ipv4Header, Ipv6Header};
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_IGMP};

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
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                self.ipv4((from, to), (PROTOCOL_ICMP, &[]), message)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => self.ipv6((from, to), &[], message),
            _ => None,
        }
    }

    /// Builds an IGMP packet with `message` and a Router Alert option (RFC 2113), and writes its checksum.
    /// Returns `None` in the same cases as [`Envelope::icmp`].
    pub(super) fn igmp(&self, from: Ipv4Addr, to: Ipv4Addr, message: &[u8]) -> Option<Vec<u8>> {
        self.ipv4((from, to), (PROTOCOL_IGMP, &IPV4_ROUTER_ALERT), message)
    }

    /// Builds an ICMPv6 packet of multicast listener discovery with `message` and a Router Alert option (RFC
    /// 2711), and writes its checksum. Returns `None` in the same cases as [`Envelope::icmp`].
    pub(super) fn mld(&self, from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> Option<Vec<u8>> {
        self.ipv6((from, to), &IPV6_ROUTER_ALERT, message)
    }

    fn ipv4(
        &self,
        (source, destination): (Ipv4Addr, Ipv4Addr),
        (protocol, options): (u8, &[u8]),
        message: &[u8],
    ) -> Option<Vec<u8>> {
        let ip = Ipv4Header {
            source,
            destination,
            protocol,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            options,
            payload_bytes: message.len(),
            ..Ipv4Header::default()
        };
        let mut frame = self.start(ETHERTYPE_IPV4, ip.bytes() + message.len())?;
        let packet = frame.get_mut(self.link_bytes()..)?;
        put(ip.write(packet).ok()?, message, Sum::ZERO)?;
        Some(frame)
    }

    /// Builds an ICMPv6 packet. `extension` is a hop-by-hop options header, or empty.
    fn ipv6(
        &self,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        extension: &[u8],
        message: &[u8],
    ) -> Option<Vec<u8>> {
        let ip = Ipv6Header {
            source,
            destination,
            next_header: if extension.is_empty() { PROTOCOL_ICMPV6 } else { HOP_BY_HOP },
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            payload_bytes: extension.len() + message.len(),
            ..Ipv6Header::default()
        };
        let mut frame = self.start(ETHERTYPE_IPV6, ip.bytes() + ip.payload_bytes)?;
        let packet = frame.get_mut(self.link_bytes()..)?;
        let (options, rest) = ip.write(packet).ok()?.split_at_mut_checked(extension.len())?;
        options.copy_from_slice(extension);
        let message_bytes = u32::try_from(message.len()).ok()?;
        put(rest, message, ip.pseudo_header(PROTOCOL_ICMPV6, message_bytes))?;
        Some(frame)
    }

    /// Returns a frame with room for an IP packet of `bytes` bytes, and writes the Ethernet header.
    fn start(&self, ethertype: u16, bytes: usize) -> Option<Vec<u8>> {
        let mut frame = vec![0; self.link_bytes() + bytes];
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

/// Returns the Ethernet address of a multicast group (RFC 1112, section 6.4; RFC 2464, section 7).
pub(crate) fn group_mac(group: IpAddr) -> Mac {
    match group {
        IpAddr::V4(ip) => {
            let [_, b, c, d] = ip.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(ip) => {
            let [.., a, b, c, d] = ip.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
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
