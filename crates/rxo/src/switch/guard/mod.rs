//! Guards a port: decides whether its device may send a packet.
//!
//! A device may claim only its own addresses: ARP and neighbour discovery are checked, and with `ips` also the
//! source of each packet. Messages that direct the traffic of a whole link (those of routers and DHCP servers)
//! are accepted only from ports whose devices may send such messages (RFC 6105, RFC 7113, RFC 7610). This
//! module is separate from the switch, because a guard decides about one frame, and needs neither the table of
//! addresses nor the time.
//!
//! # Contract
//! No side effects and no panics. A packet is refused if the headers that the decision requires cannot be read.
//! Packets inside tunnels are not checked, because that is the task of the tunnel's end.

mod neighbour;

use std::net::{IpAddr, Ipv6Addr};

use super::packet::{Arp, ICMP, ICMPV6, IGMP, Ip, Packet, UDP, Upper};
use super::{DropReason, MacAddress};

/// The rights of a guarded port beyond sending from its own addresses. The default grants no rights, and
/// allows any IP address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// The only IP addresses of the device; empty to allow any. A port that is fixed to an Ethernet address
    /// also has the link-local address that follows from it (RFC 4291, appendix A).
    pub ips: Vec<IpAddr>,
    /// `true` if the device may send the messages of routers: router advertisements, redirects, and queries of
    /// IGMP and MLD. The device's port also receives the frames of all multicast groups.
    pub routes: bool,
    /// `true` if the device may answer DHCP and DHCPv6 clients.
    pub serves_dhcp: bool,
    /// `true` if the device may not exchange frames with other isolated ports.
    pub is_isolated: bool,
}

impl Guard {
    /// Checks a packet that arrived at this port. `own` is the only Ethernet address of the port, or `None`
    /// if the port learns addresses.
    ///
    /// # Errors
    /// The reason to drop the packet.
    pub(super) fn check(
        &self,
        own: Option<MacAddress>,
        packet: &Packet<'_>,
    ) -> Result<(), DropReason> {
        match packet {
            Packet::Arp(arp) => self.check_arp(own, arp),
            Packet::Ip(ip) => self.check_ip(own, ip),
            Packet::Other => Ok(()),
            Packet::Malformed => Err(DropReason::Malformed),
        }
    }

    fn check_arp(&self, own: Option<MacAddress>, arp: &Arp) -> Result<(), DropReason> {
        if arp.assigns && !self.serves_dhcp {
            return Err(DropReason::ForeignDhcp);
        }
        // A probe does not claim an address for its sender, but a host that has the target would give it up
        // (RFC 5227, section 2.1.1).
        let claimed = if arp.sender.is_unspecified() { arp.target } else { arp.sender };
        let is_own = own.is_none_or(|own| own == arp.sender_mac);
        if is_own && (claimed.is_unspecified() || self.may_have(own, claimed.into())) {
            return Ok(());
        }
        Err(DropReason::ForeignNeighbour)
    }

    fn check_ip(&self, own: Option<MacAddress>, ip: &Ip<'_>) -> Result<(), DropReason> {
        if !ip.source.is_unspecified() && !self.may_have(own, ip.source) {
            return Err(DropReason::ForeignIp);
        }
        let Upper::First { protocol, is_fragment, bytes } = ip.upper else {
            return self.check_unspecified(ip, false);
        };
        let allowed = match (protocol, ip.source) {
            (UDP, _) => {
                let port = destination_port(bytes).ok_or(DropReason::Malformed)?;
                if CLIENT_PORTS.contains(&port) && !self.serves_dhcp {
                    return Err(DropReason::ForeignDhcp);
                }
                port == SERVER_PORT
            }
            (IGMP, IpAddr::V4(_)) => {
                self.check_router(IGMP_OF_ROUTERS, bytes)?;
                true
            }
            (ICMP, IpAddr::V4(_)) => {
                self.check_router(ICMP_OF_ROUTERS, bytes)?;
                false
            }
            (ICMPV6, IpAddr::V6(source)) => {
                self.check_router(ICMPV6_OF_ROUTERS, bytes)?;
                self.check_neighbour(own, source, bytes, is_fragment)?;
                true
            }
            _ => false,
        };
        self.check_unspecified(ip, allowed)
    }

    /// Checks a packet whose source is the unspecified address: a host may send such a packet only before it
    /// has an address, to a DHCP server, as a report of memberships, or for neighbour discovery.
    fn check_unspecified(&self, ip: &Ip<'_>, is_allowed: bool) -> Result<(), DropReason> {
        let is_right = self.ips.is_empty() || is_allowed || !ip.source.is_unspecified();
        if is_right { Ok(()) } else { Err(DropReason::ForeignIp) }
    }

    /// Checks that a control message is not of one of the types `of_routers`, unless the device may route.
    fn check_router(&self, of_routers: &[u8], message: &[u8]) -> Result<(), DropReason> {
        let kind = message.first().ok_or(DropReason::Malformed)?;
        let is_foreign = of_routers.contains(kind) && !self.routes;
        if is_foreign { Err(DropReason::ForeignRouter) } else { Ok(()) }
    }

    /// Returns `true` if `ip` may be an address of the device.
    fn may_have(&self, own: Option<MacAddress>, ip: IpAddr) -> bool {
        self.ips.is_empty()
            || self.ips.contains(&ip)
            || own.is_some_and(|own| ip == IpAddr::V6(link_local(own)))
    }
}

/// Returns the destination port of a UDP header; `None` if the header is incomplete, as in a fragment that was
/// made to hide the port.
fn destination_port(udp: &[u8]) -> Option<u16> {
    let [_, _, high, low, ..] = udp else { return None };
    Some(u16::from_be_bytes([*high, *low]))
}

/// Returns the link-local address that follows from an Ethernet address (RFC 4291, appendix A).
fn link_local(MacAddress([a, b, c, d, e, f]): MacAddress) -> Ipv6Addr {
    let bytes = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f];
    Ipv6Addr::from(bytes)
}

/// The ports of DHCP clients, for IPv4 (RFC 2131) and IPv6 (RFC 8415). Some clients check nothing but the
/// destination port.
const CLIENT_PORTS: [u16; 2] = [68, 546];
/// The port of a DHCP server of IPv4.
const SERVER_PORT: u16 = 67;
/// The IGMP types of routers: membership queries, and multicast router advertisements (RFC 4286).
const IGMP_OF_ROUTERS: &[u8] = &[0x11, 0x30];
/// The ICMP types of routers: redirects (RFC 792) and router advertisements (RFC 1256).
const ICMP_OF_ROUTERS: &[u8] = &[5, 9];
/// The ICMPv6 types of routers: listener queries (RFC 3810), router advertisements and redirects (RFC 4861),
/// multicast router advertisements.
const ICMPV6_OF_ROUTERS: &[u8] = &[130, 134, 137, 151];

#[cfg(test)]
mod tests;
