//! The network of an address, by which modules count.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The network of `address`: of 24 bits for IPv4, of 64 for IPv6.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(it) => Ipv4Addr::from_bits(it.to_bits() & u32::MAX << 8).into(),
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() & u128::MAX << 64).into(),
    }
}

/// The length of its prefix, in bits.
pub(super) const fn bits(network: IpAddr) -> u8 {
    if network.is_ipv4() { 24 } else { 64 }
}
