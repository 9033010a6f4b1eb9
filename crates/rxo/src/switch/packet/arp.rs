//! ARP (RFC 826) and RARP (RFC 903), which have the same layout.

use std::net::Ipv4Addr;

use super::super::MacAddress;

/// The addresses that the sender of an ARP or RARP packet claims, and the address that the packet asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::switch) struct Arp {
    pub(in crate::switch) sender_mac: MacAddress,
    pub(in crate::switch) sender: Ipv4Addr,
    pub(in crate::switch) target: Ipv4Addr,
    /// `true` for a RARP reply, which assigns an address to its receiver, as DHCP does.
    pub(in crate::switch) assigns: bool,
}

impl Arp {
    /// Parses a packet of ARP or RARP for IPv4 over Ethernet; `None` for any other packet, which no IPv4 host
    /// could use.
    pub(super) fn read(packet: &[u8], is_reverse: bool) -> Option<Self> {
        let packet: &[u8; PACKET_BYTES] = packet.first_chunk()?;
        let (head, rest) = packet.split_first_chunk::<6>()?;
        let (operation, rest) = rest.split_first_chunk::<2>()?;
        let (sender_mac, rest) = rest.split_first_chunk::<6>()?;
        let (sender, rest) = rest.split_first_chunk::<4>()?;
        let (_, target) = rest.split_first_chunk::<6>()?;
        (*head == IPV4_OVER_ETHERNET).then_some(Self {
            sender_mac: MacAddress(*sender_mac),
            sender: Ipv4Addr::from(*sender),
            target: Ipv4Addr::from(*target.first_chunk::<4>()?),
            assigns: is_reverse && u16::from_be_bytes(*operation) == REVERSE_REPLY,
        })
    }
}

const PACKET_BYTES: usize = 28;
/// Hardware type 1 (Ethernet), protocol 0x0800 (IPv4), and the lengths of their addresses.
const IPV4_OVER_ETHERNET: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REVERSE_REPLY: u16 = 4;
