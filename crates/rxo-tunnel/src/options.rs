//! The command line and the parsing of its values.

use std::fs;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Parser;
use ip_network::IpNetwork;

/// A WireGuard tunnel with receive offload.
#[derive(Parser, Debug)]
#[command(name = "rxo-tunnel", version)]
pub(crate) struct Options {
    /// File with the private key, as `wg genkey` prints it.
    #[arg(long, value_name = "FILE")]
    pub(crate) private_key: PathBuf,
    /// Public key of the peer, as `wg pubkey` prints it.
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub(crate) peer: [u8; 32],
    /// File with the additional key that is shared with the peer, as `wg genpsk` prints it.
    #[arg(long, value_name = "FILE")]
    pub(crate) preshared_key: Option<PathBuf>,
    /// Address and port of the peer. Without it, the peer must send first.
    #[arg(long, value_name = "HOST:PORT", value_parser = endpoint)]
    pub(crate) endpoint: Option<SocketAddr>,
    /// UDP port to listen on; 0 for any.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) listen_port: u16,
    /// Name of the TUN interface, which is created.
    #[arg(long, value_name = "NAME", default_value = "rxo0")]
    pub(crate) interface: String,
    /// Addresses of the interface, separated by commas.
    #[arg(long, value_name = "IP/BITS", value_delimiter = ',', required = true)]
    pub(crate) address: Vec<Network>,
    /// Addresses behind the peer, separated by commas: they are routed into the tunnel, and only they are
    /// accepted from it.
    #[arg(long, value_name = "IP/BITS", value_delimiter = ',', required = true)]
    pub(crate) allowed_ips: Vec<Network>,
    /// Largest packet in the tunnel, in bytes: 80 less than in the network below.
    #[arg(long, value_name = "BYTES", default_value_t = 1_420, value_parser = clap::value_parser!(u32).range(576..=65_400))]
    pub(crate) mtu: u32,
    /// Seconds between empty packets that keep a NAT's mapping open.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) keepalive: Option<u16>,
    /// Threads: 1 for both directions together, or 2, one for each.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) threads: u8,
    /// Write packets to the TUN one by one.
    #[arg(long)]
    pub(crate) no_coalescing: bool,
    /// Receive and send datagrams one by one.
    #[arg(long)]
    pub(crate) no_trains: bool,
    /// Seconds between lines of figures; without it, figures are printed only at the end.
    #[arg(long, value_name = "SECONDS", default_value_t = u32::MAX, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) figures: u32,
}

/// An address with the prefix length of its network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub(crate) ip: IpAddr,
    pub(crate) bits: u8,
    /// The network that contains the address.
    pub(crate) all: IpNetwork,
}

impl std::str::FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (ip, bits) = text.split_once('/').unwrap_or((text, ""));
            let ip: IpAddr = ip.parse().ok()?;
            let whole = if ip.is_ipv4() { 32 } else { 128 };
            let bits = if bits.is_empty() { whole } else { bits.parse().ok()? };
            Some(Self { ip, bits, all: IpNetwork::new_truncate(ip, bits).ok()? })
        };
        let wrong = || format!("`{text}` is not an address with a prefix, such as 10.0.0.1/24");
        read().ok_or_else(wrong)
    }
}

/// Reads a key in base64 from a file.
pub(crate) fn key_in(path: &PathBuf) -> Result<[u8; 32]> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let wrong = |_| anyhow!("{} holds no key; `wg genkey` makes one", path.display());
    key(text.trim()).map_err(wrong)
}

fn key(text: &str) -> Result<[u8; 32], String> {
    let bytes = BASE64_STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "a key is 32 bytes in base64, 44 characters".to_owned())
}

fn endpoint(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|error| error.to_string())?;
    found.next().ok_or_else(|| "this name has no address".to_owned())
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

    #[test]
    fn a_key_has_32_bytes() {
        assert_eq!(key(&BASE64_STANDARD.encode([7; 32])), Ok([7; 32]));
        key(&BASE64_STANDARD.encode([7; 31])).unwrap_err();
        key("no key").unwrap_err();
    }
}
