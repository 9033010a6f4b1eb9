//! Routes: select the next hop of a packet and its source address.
//!
//! The module is pure. It searches a table for the longest matching prefix, linearly, because the table has few
//! rows.

use std::net::{IpAddr, Ipv6Addr};

use super::{IpCidr, LinkError};

/// A static route: packets for `destination` are sent to `gateway`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination network; host bits are ignored.
    pub destination: IpCidr,
    /// The neighbour that forwards the packets, on one of the link's own networks.
    pub gateway: IpAddr,
}

impl Route {
    /// Creates the default route for the IP version of `gateway`.
    #[must_use]
    pub fn default_by(gateway: IpAddr) -> Self {
        Self { destination: IpCidr::everything(gateway.is_ipv4()), gateway }
    }
}

/// The addresses and routes of a host.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    addresses: Vec<IpCidr>,
    /// The routes to other networks, sorted by prefix length, the longest first.
    routes: Vec<Route>,
}

impl Routes {
    /// Creates the table from the host's addresses and its routes to other networks.
    ///
    /// # Errors
    /// If an address cannot belong to a host, or a gateway is not on a network of this host.
    pub(super) fn new(addresses: Vec<IpCidr>, routes: &[Route]) -> Result<Self, LinkError> {
        if addresses.is_empty() {
            return Err(LinkError::NoAddress);
        }
        for (place, cidr) in addresses.iter().enumerate() {
            let is_repeated = addresses[..place].iter().any(|one| one.address() == cidr.address());
            if is_repeated || !is_host(cidr.address()) || is_broadcast_of(cidr, cidr.address()) {
                return Err(LinkError::Address { address: *cidr });
            }
        }
        let mut all = Self { addresses, routes: routes.to_vec() };
        all.routes.sort_by_key(|route| std::cmp::Reverse(route.destination.prefix_bits()));
        match all.routes.iter().find(|route| !all.is_possible(route)) {
            Some(route) => Err(LinkError::Gateway { gateway: route.gateway }),
            None => Ok(all),
        }
    }

    fn is_possible(&self, route: &Route) -> bool {
        route.destination.address().is_ipv4() == route.gateway.is_ipv4()
            && is_host(route.gateway)
            && !self.is_ours(route.gateway)
            && self.own_network(route.gateway).is_some()
    }

    /// Returns all addresses of the host.
    pub(super) fn addresses(&self) -> &[IpCidr] {
        &self.addresses
    }

    /// Returns `true` if `ip` is an address of this host.
    pub(super) fn is_ours(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|cidr| cidr.address() == ip)
    }

    /// Returns `true` if `ip` may be a neighbour: another host's address on one of the link's networks.
    pub(super) fn may_be_neighbour(&self, ip: IpAddr) -> bool {
        self.may_be_another(ip) && self.own_network(ip).is_some()
    }

    /// Returns `true` if `ip` can be the address of another host, on this link or elsewhere.
    pub(super) fn may_be_another(&self, ip: IpAddr) -> bool {
        is_host(ip) && !self.is_ours(ip) && !self.is_broadcast(ip)
    }

    /// Returns the neighbour to which a packet for `ip` is sent; `None` if there is no route.
    pub(super) fn next_hop(&self, ip: IpAddr) -> Option<IpAddr> {
        if !self.may_be_another(ip) {
            return None;
        }
        let direct = self.own_network(ip);
        let route = self.routes.iter().find(|route| route.destination.contains(ip));
        match (direct, route) {
            (Some(own), Some(route)) if route.destination.prefix_bits() > own => {
                Some(route.gateway)
            }
            (Some(_), _) => Some(ip),
            (None, route) => route.map(|route| route.gateway),
        }
    }

    /// Returns the source address of a packet for `ip`: an address in the network of the next hop, or else the
    /// first address that is not link-local. `None` if there is no route.
    pub(super) fn source_for(&self, ip: IpAddr) -> Option<IpAddr> {
        let hop = self.next_hop(ip)?;
        let same = self.addresses.iter().filter(|cidr| cidr.address().is_ipv4() == ip.is_ipv4());
        let on_network = same.clone().filter(|cidr| cidr.contains(hop));
        let chosen = on_network
            .max_by_key(|cidr| cidr.prefix_bits())
            .filter(|cidr| is_link_local(ip) || !is_link_local(cidr.address()));
        let wide = same.clone().find(|cidr| !is_link_local(cidr.address()));
        chosen.or(wide).or(same.clone().next()).map(IpCidr::address)
    }

    fn is_broadcast(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|cidr| is_broadcast_of(cidr, ip))
    }

    /// Returns the prefix length, in bits, of the smallest network of this host that contains `ip`; `None` if
    /// no network does. Link-local IPv6 addresses are always on the link (RFC 4291, section 2.5.6).
    fn own_network(&self, ip: IpAddr) -> Option<u8> {
        let own = self.addresses.iter().filter(|cidr| cidr.contains(ip));
        let own = own.map(IpCidr::prefix_bits).max();
        let speaks_v6 = self.addresses.iter().any(|cidr| cidr.address().is_ipv6());
        own.or((is_link_local(ip) && ip.is_ipv6() && speaks_v6).then_some(LINK_LOCAL_BITS))
    }
}

/// Returns `true` if `ip` can be the address of a host.
fn is_host(ip: IpAddr) -> bool {
    let is_limited_broadcast = ip == IpAddr::from([255; 4]);
    !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback() && !is_limited_broadcast
}

fn is_broadcast_of(cidr: &IpCidr, ip: IpAddr) -> bool {
    cidr.broadcast().map(IpAddr::V4) == Some(ip)
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Derives the link-local address of a device from its Ethernet address (RFC 4291, section 2.5.6 and appendix
/// A).
pub(super) fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let mut octets = [0; 16];
    octets[..2].copy_from_slice(&[0xfe, 0x80]);
    octets[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from(octets)
}

const LINK_LOCAL_BITS: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn cidr(text: &str) -> IpCidr {
        text.parse().unwrap()
    }

    fn route(destination: &str, gateway: &str) -> Route {
        Route { destination: cidr(destination), gateway: ip(gateway) }
    }

    fn routes() -> Routes {
        let addresses = ["10.0.0.2/24", "192.168.7.1/30", "fd00::2/64"].map(cidr).to_vec();
        let routes = [
            Route::default_by(ip("10.0.0.1")),
            Route::default_by(ip("fe80::1")),
            route("172.16.0.0/12", "10.0.0.9"),
            route("172.16.5.0/24", "192.168.7.2"),
            route("10.0.0.128/25", "10.0.0.7"),
        ];
        Routes::new(addresses, &routes).unwrap()
    }

    #[test]
    fn the_longest_prefix_wins() {
        let rows = [
            ("10.0.0.5", Some("10.0.0.5")),
            ("10.0.0.200", Some("10.0.0.7")),
            ("8.8.8.8", Some("10.0.0.1")),
            ("172.16.4.1", Some("10.0.0.9")),
            ("172.16.5.1", Some("192.168.7.2")),
            ("fd00::9", Some("fd00::9")),
            ("fe80::77", Some("fe80::77")),
            ("2001:db8::1", Some("fe80::1")),
            ("10.0.0.2", None),
            ("10.0.0.255", None),
            ("224.0.0.1", None),
            ("255.255.255.255", None),
            ("0.0.0.0", None),
            ("ff02::1", None),
            ("::", None),
            ("127.0.0.1", None),
        ];
        for (to, hop) in rows {
            assert_eq!(routes().next_hop(ip(to)), hop.map(ip), "{to}");
        }
    }

    #[test]
    fn without_a_route_there_is_no_way() {
        let routes = Routes::new(vec![cidr("10.0.0.2/24")], &[]).unwrap();
        assert_eq!(routes.next_hop(ip("10.0.1.1")), None);
        assert_eq!(routes.next_hop(ip("fe80::1")), None);
        assert_eq!(routes.source_for(ip("10.0.1.1")), None);
    }

    #[test]
    fn a_packet_comes_from_the_network_it_goes_to() {
        let rows = [
            ("10.0.0.5", "10.0.0.2"),
            ("192.168.7.2", "192.168.7.1"),
            ("8.8.8.8", "10.0.0.2"),
            ("172.16.5.1", "192.168.7.1"),
            ("2001:db8::1", "fd00::2"),
        ];
        for (to, from) in rows {
            assert_eq!(routes().source_for(ip(to)), Some(ip(from)), "{to}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let said = |addresses: &[&str], routes: &[Route]| {
            let addresses = addresses.iter().map(|text| cidr(text)).collect();
            Routes::new(addresses, routes).unwrap_err().to_string()
        };
        assert_eq!(said(&[], &[]), "no address; give one like 10.0.0.2/24");
        for wrong in ["224.0.0.1/24", "0.0.0.0/8", "127.0.0.1/8", "10.0.0.255/24", "ff02::1/64"] {
            let remedy = "give each address of one host once";
            assert_eq!(said(&[wrong], &[]), format!("{wrong} cannot be this host's; {remedy}"));
        }
        assert!(said(&["10.0.0.2/24", "10.0.0.2/8"], &[]).starts_with("10.0.0.2/8 cannot be"));
        let remedy = "choose a neighbour's address on a network of this host";
        for gateway in ["10.0.1.1", "10.0.0.2", "fd00::1"] {
            let routes = [Route::default_by(ip(gateway))];
            let expected = format!("gateway {gateway} cannot be reached; {remedy}");
            assert_eq!(said(&["10.0.0.2/24"], &routes), expected);
        }
    }

    /// The example of RFC 4291, appendix A.
    #[test]
    fn a_device_names_its_link_local_address() {
        let mac = [0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde];
        assert_eq!(IpAddr::V6(link_local(mac)), ip("fe80::3656:78ff:fe9a:bcde"));
    }
}
