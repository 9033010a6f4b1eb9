//! An address with a prefix length: `10.0.0.1/24`.

use std::net::IpAddr;

use ip_network::IpNetwork;

/// An address with the prefix length of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) ip: IpAddr,
    pub(crate) bits: u8,
    /// The network that contains the address.
    pub(crate) all: IpNetwork,
}

impl std::str::FromStr for Network {
    type Err = String;

    /// Parses `ADDRESS/LENGTH`. Without a prefix length, the network contains only the address.
    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (ip, bits) = text.split_once('/').unwrap_or((text, ""));
            let ip: IpAddr = ip.parse().ok()?;
            let whole = if ip.is_ipv4() { 32 } else { 128 };
            let bits = if bits.is_empty() { whole } else { bits.parse().ok()? };
            Some(Self { ip, bits, all: IpNetwork::new_truncate(ip, bits).ok()? })
        };
        read()
            .ok_or_else(|| format!("`{text}` is not an address with a prefix, such as 10.0.0.1/24"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_contain_their_addresses() {
        let network: Network = "10.1.2.3/8".parse().unwrap();
        assert_eq!(network.all.network_address(), IpAddr::from([10, 0, 0, 0]));
        assert!(network.all.contains(IpAddr::from([10, 255, 0, 1])));
        assert!(!network.all.contains(IpAddr::from([11, 0, 0, 1])));
        let all: Network = "::/0".parse().unwrap();
        assert!(all.all.contains("2001:db8::1".parse::<IpAddr>().unwrap()));
        assert!(!all.all.contains(IpAddr::from([10, 0, 0, 1])));
        assert_eq!("fd00::1".parse::<Network>().unwrap().bits, 128);
        for wrong in ["", "10.0.0.1/33", "10.0.0/8", "::1/129", "1.1.1.1/x"] {
            wrong.parse::<Network>().unwrap_err();
        }
    }
}
