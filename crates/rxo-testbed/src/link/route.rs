//! Builds the netlink requests for addresses, routes and neighbours, which [`Interface`](super::Interface) sends.

use std::net::IpAddr;

use rxo_netlink::Request;

use super::Mac;

/// Returns the request that adds an address to an interface. The address is usable at once, without duplicate
/// address detection.
pub(crate) fn address(index: u32, address: IpAddr, prefix_bits: u8) -> Request {
    let (family, address) = octets(address);
    let header = [[family, prefix_bits, libc::IFA_F_NODAD as u8, 0], index.to_ne_bytes()];
    Request::new(libc::RTM_NEWADDR, &header.concat())
        .flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .attribute(libc::IFA_LOCAL, &address)
        .attribute(libc::IFA_ADDRESS, &address)
}

/// Returns the request that adds a route through the interface with this index.
pub(crate) fn route(
    index: u32,
    (destination, prefix_bits): (IpAddr, u8),
    gateway: Option<IpAddr>,
) -> Request {
    let (family, destination) = octets(destination);
    let scope = if gateway.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
    let header = [
        [family, prefix_bits, 0, 0],
        [libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST],
        [0; 4],
    ];
    let destination = (prefix_bits > 0).then_some((libc::RTA_DST, destination));
    let gateway = gateway.map(|ip| (libc::RTA_GATEWAY, octets(ip).1));
    Request::new(libc::RTM_NEWROUTE, &header.concat())
        .flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .attribute(libc::RTA_OIF, &index.to_ne_bytes())
        .attributes(destination.as_slice())
        .attributes(gateway.as_slice())
}

/// Returns the request for a route with an addition: TCP acknowledges data on this route at once, without
/// delay.
pub(crate) fn with_quick_acks(route: Request) -> Request {
    route.nest(libc::RTA_METRICS, &[(QUICK_ACK, &1_u32.to_ne_bytes())])
}

/// Returns the request that adds a neighbour with a fixed MAC address.
pub(crate) fn neighbour(index: u32, address: IpAddr, mac: Mac) -> Request {
    let (family, address) = octets(address);
    let state = u32::from(libc::NUD_PERMANENT).to_ne_bytes();
    let header = [[family, 0, 0, 0], index.to_ne_bytes(), state];
    Request::new(libc::RTM_NEWNEIGH, &header.concat())
        .flags(libc::NLM_F_CREATE | libc::NLM_F_REPLACE)
        .attribute(libc::NDA_DST, &address)
        .attribute(libc::NDA_LLADDR, &mac)
}

/// Returns the address family and the bytes of an address.
fn octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(v4) => (libc::AF_INET as u8, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6 as u8, v6.octets().to_vec()),
    }
}

/// The route metric `RTAX_QUICKACK` of linux/rtnetlink.h.
const QUICK_ACK: u16 = 15;
