//! An IP address together with the prefix length of its network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// An IPv4 or IPv6 address with the prefix length of its network: `10.0.0.2/24`, `fd00::2/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpCidr {
    address: IpAddr,
    prefix_bits: u8,
}

impl IpCidr {
    /// Creates an address in a network with a prefix of `prefix_bits`: at most 32 for IPv4, 128 for IPv6.
    ///
    /// # Errors
    /// If the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix_bits: u8) -> Result<Self, CidrError> {
        let most = width(address);
        if prefix_bits > most {
            return Err(CidrError::Prefix { given: prefix_bits.to_string(), most });
        }
        Ok(Self { address, prefix_bits })
    }

    /// Returns the prefix of length zero, which covers all addresses of one IP version.
    pub(super) const fn everything(is_v4: bool) -> Self {
        let v4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        Self { address: if is_v4 { v4 } else { v6 }, prefix_bits: 0 }
    }

    /// Returns the network that contains only `ip`.
    pub(crate) fn of_host(ip: IpAddr) -> Self {
        Self { address: ip, prefix_bits: width(ip) }
    }

    /// Returns the source network of `ip`, for counters by network: the prefix of 24 bits for IPv4, 64 bits for
    /// IPv6.
    pub(crate) fn of_source(ip: IpAddr) -> Self {
        let (address, prefix_bits) = match ip {
            IpAddr::V4(ip) => (Ipv4Addr::from_bits(ip.to_bits() & u32::MAX << 8).into(), 24),
            IpAddr::V6(ip) => (Ipv6Addr::from_bits(ip.to_bits() & u128::MAX << 64).into(), 64),
        };
        Self { address, prefix_bits }
    }

    /// Returns the address, including its host bits.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the length of the prefix, in bits.
    #[must_use]
    pub const fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }

    /// Returns `true` if `ip` is in this network. Returns `false` for an address of the other IP version.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        let most = width(self.address);
        let differs = bits(self.address) ^ bits(ip);
        let host_bits = u32::from(most - self.prefix_bits);
        width(ip) == most && differs.checked_shr(host_bits).unwrap_or(0) == 0
    }

    /// Returns the broadcast address of an IPv4 network; `None` for IPv6, and for networks of one or two
    /// addresses (RFC 3021).
    #[must_use]
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        match self.address {
            IpAddr::V4(address) if self.prefix_bits < 31 => {
                Some(Ipv4Addr::from_bits(address.to_bits() | u32::MAX >> self.prefix_bits))
            }
            _ => None,
        }
    }
}

/// Returns the length of an address of the same IP version as `ip`, in bits.
fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

impl FromStr for IpCidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let address = |text: &str| {
            text.parse::<IpAddr>().map_err(|_| CidrError::Address { given: text.to_owned() })
        };
        let Some((before, after)) = text.split_once('/') else {
            return Err(CidrError::NoPrefix { address: address(text)? });
        };
        let address = address(before)?;
        let prefix = after
            .parse::<u8>()
            .map_err(|_| CidrError::Prefix { given: after.to_owned(), most: width(address) })?;
        Self::new(address, prefix)
    }
}

impl fmt::Display for IpCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

/// The reason why a string is not an address with a prefix length.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CidrError {
    /// The string does not begin with a valid address.
    #[error("{given:?} is no IP address; write one like 10.0.0.2/24 or fd00::2/64")]
    Address {
        /// The string that was given instead of an address.
        given: String,
    },
    /// The prefix length is missing.
    #[error(
        "{address} has no prefix length; write {address}/{usual}",
        usual = if .address.is_ipv4() { 24 } else { 64 }
    )]
    NoPrefix {
        /// The address that was given without a prefix length.
        address: IpAddr,
    },
    /// The prefix length is not a number, or longer than the address.
    #[error("prefix length {given:?} is invalid; choose 0 to {most}")]
    Prefix {
        /// The string that was given as the prefix length.
        given: String,
        /// The largest valid prefix length for the address, in bits.
        most: u8,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> IpCidr {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        for text in ["10.0.0.2/24", "fd00::2/64", "0.0.0.0/0", "::/0", "192.0.2.1/32", "::1/128"] {
            assert_eq!(cidr(text).to_string(), text);
        }
    }

    #[test]
    fn a_mistake_is_one_line_with_its_remedy() {
        let said = |text: &str| text.parse::<IpCidr>().unwrap_err().to_string();
        assert_eq!(said("10.0.0.2"), "10.0.0.2 has no prefix length; write 10.0.0.2/24");
        assert_eq!(said("fd00::2"), "fd00::2 has no prefix length; write fd00::2/64");
        assert_eq!(said("10.0.0.2/33"), "prefix length \"33\" is invalid; choose 0 to 32");
        assert_eq!(said("::/x"), "prefix length \"x\" is invalid; choose 0 to 128");
        let remedy = "write one like 10.0.0.2/24 or fd00::2/64";
        assert_eq!(said("10.0.0/24"), format!("\"10.0.0\" is no IP address; {remedy}"));
        assert_eq!(said(""), format!("\"\" is no IP address; {remedy}"));
    }

    #[test]
    fn a_network_contains_what_shares_its_prefix() {
        let rows = [
            ("10.0.0.2/24", "10.0.0.255", true),
            ("10.0.0.2/24", "10.0.1.0", false),
            ("10.0.0.2/32", "10.0.0.2", true),
            ("10.0.0.2/32", "10.0.0.3", false),
            ("0.0.0.0/0", "255.1.2.3", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::2/64", "fd00::ffff:0:0:1", true),
            ("fd00::2/64", "fd00:0:0:1::1", false),
            ("::/0", "fe80::1", true),
            ("::/0", "1.2.3.4", false),
        ];
        for (network, ip, is_inside) in rows {
            assert_eq!(cidr(network).contains(ip.parse().unwrap()), is_inside, "{network} {ip}");
        }
    }

    /// RFC 3021, section 2.1: a /31 network has no broadcast address.
    #[test]
    fn small_networks_have_no_broadcast() {
        assert_eq!(cidr("10.0.0.2/24").broadcast(), Some(Ipv4Addr::new(10, 0, 0, 255)));
        assert_eq!(cidr("10.0.0.2/0").broadcast(), Some(Ipv4Addr::BROADCAST));
        assert_eq!(cidr("10.0.0.2/31").broadcast(), None);
        assert_eq!(cidr("fd00::2/64").broadcast(), None);
    }
}
