//! Builds the netlink messages for routes and neighbours. The interface sends them.

use std::net::IpAddr;

use netlink_packet_route::AddressFamily;
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};

use super::Mac;

/// A route out of the interface with this index.
pub(crate) fn route(
    index: u32,
    (destination, prefix_bits): (IpAddr, u8),
    gateway: Option<IpAddr>,
) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(destination);
    message.header.destination_prefix_length = prefix_bits;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.kind = RouteType::Unicast;
    message.header.scope = if gateway.is_some() { RouteScope::Universe } else { RouteScope::Link };
    message.attributes = vec![RouteAttribute::Oif(index)];
    if prefix_bits > 0 {
        message.attributes.push(RouteAttribute::Destination(route_address(destination)));
    }
    message.attributes.extend(gateway.map(|ip| RouteAttribute::Gateway(route_address(ip))));
    message
}

/// Adds to the route that TCP acknowledges at once, without delay.
pub(crate) fn with_quick_acks(mut message: RouteMessage) -> RouteMessage {
    message.attributes.push(RouteAttribute::Metrics(vec![RouteMetric::QuickAck(1)]));
    message
}

/// A neighbour with a fixed MAC address.
pub(crate) fn neighbour(index: u32, address: IpAddr, mac: Mac) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(address);
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    message.attributes = vec![
        NeighbourAttribute::Destination(address.into()),
        NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
    ];
    message
}

/// The address family of `address`.
pub(crate) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    }
}
