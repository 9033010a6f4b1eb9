//! ARP: resolves IPv4 addresses to Ethernet addresses (RFC 826, RFC 5227).

use std::net::Ipv4Addr;

use etherparse::{ArpEthIpv4Packet, ArpOperation, ArpPacketSlice};

use super::frames::{self, BROADCAST};
use super::neighbours::Mac;

/// The content of an ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arp {
    pub(super) is_request: bool,
    pub(super) sender_mac: Mac,
    pub(super) sender: Ipv4Addr,
    pub(super) target: Ipv4Addr,
}

impl Arp {
    /// Parses the packet after the Ethernet header. `None` if the packet is not for IPv4 over Ethernet, is
    /// neither a request nor a reply, or has an invalid sender such as a group address.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let packet = ArpPacketSlice::from_slice(bytes).ok()?.to_packet().try_eth_ipv4().ok()?;
        let is_known = [ArpOperation::REQUEST, ArpOperation::REPLY].contains(&packet.operation);
        let is_somebody = packet.sender_mac[0] & 1 == 0 && packet.sender_mac != [0; 6];
        (is_known && is_somebody).then_some(Self {
            is_request: packet.operation == ArpOperation::REQUEST,
            sender_mac: packet.sender_mac,
            sender: packet.sender_ipv4_addr(),
            target: packet.target_ipv4_addr(),
        })
    }

    /// Builds the reply to this request: `target` has the address `mac`. `None` if the packet cannot be
    /// built.
    pub(super) fn reply(&self, mac: Mac) -> Option<Vec<u8>> {
        let packet = ArpEthIpv4Packet {
            operation: ArpOperation::REPLY,
            sender_mac: mac,
            sender_ipv4: self.target.octets(),
            target_mac: self.sender_mac,
            target_ipv4: self.sender.octets(),
        };
        frames::arp(mac, self.sender_mac, &packet.to_bytes())
    }
}

/// Builds an ARP request for `target`, sent to `to` or, if that is `None`, to all stations.
pub(super) fn request(
    mac: Mac,
    sender: Ipv4Addr,
    target: Ipv4Addr,
    to: Option<Mac>,
) -> Option<Vec<u8>> {
    let packet = ArpEthIpv4Packet {
        operation: ArpOperation::REQUEST,
        sender_mac: mac,
        sender_ipv4: sender.octets(),
        target_mac: [0; 6],
        target_ipv4: target.octets(),
    };
    frames::arp(mac, to.unwrap_or(BROADCAST), &packet.to_bytes())
}

/// Builds an ARP probe for `target`: a request that does not claim the address for this host (RFC 5227, section
/// 2.1.1). `None` if the frame cannot be written.
pub(super) fn probe(mac: Mac, target: Ipv4Addr) -> Option<Vec<u8>> {
    request(mac, Ipv4Addr::UNSPECIFIED, target, None)
}
