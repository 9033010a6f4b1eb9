//! The command line and the parsing of its values.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use crate::keys::{Key, from_base64, key_in};
use crate::network::Network;
use crate::uapi::{Change, PeerSettings, Settings};

/// A WireGuard tunnel with receive offload.
///
/// Creates INTERFACE and its control socket, through which `wg` and `wg-quick` configure the tunnel. With
/// --private-key, the flags configure the tunnel with one peer instead.
#[derive(Parser, Debug)]
#[command(name = "rxo-tunnel", version)]
pub(crate) struct Options {
    /// Name of the TUN interface to create.
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: String,
    /// Stay in the foreground. By default, the program continues in the background once the interface and the
    /// socket exist.
    #[arg(short, long)]
    pub(crate) foreground: bool,
    /// File with the private key, as `wg genkey` prints it. The program then stays in the foreground, and has
    /// no control socket.
    #[arg(long, value_name = "FILE", requires_all = ["peer", "address", "allowed_ips"])]
    pub(crate) private_key: Option<PathBuf>,
    /// Public key of the peer, as `wg pubkey` prints it.
    #[arg(long, value_name = "KEY", value_parser = from_base64, requires = "private_key")]
    pub(crate) peer: Option<Key>,
    /// File with the preshared key, an additional secret of both peers, as `wg genpsk` prints it.
    #[arg(long, value_name = "FILE", requires = "private_key")]
    pub(crate) preshared_key: Option<PathBuf>,
    /// Address and port of the peer. Without this option, the peer must send first.
    #[arg(long, value_name = "HOST:PORT", value_parser = endpoint, requires = "private_key")]
    pub(crate) endpoint: Option<SocketAddr>,
    /// UDP port to listen on; 0 for any free port.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) listen_port: u16,
    /// Addresses of the interface with their prefix lengths, separated by commas.
    #[arg(long, value_name = "IP/BITS", value_delimiter = ',', requires = "private_key")]
    pub(crate) address: Vec<Network>,
    /// Networks behind the peer, separated by commas. Packets to these networks are routed into the tunnel, and
    /// packets from the peer are accepted only if their source is in one of these networks.
    #[arg(long, value_name = "IP/BITS", value_delimiter = ',', requires = "private_key")]
    pub(crate) allowed_ips: Vec<Network>,
    /// Seconds between empty packets, which keep the mapping in a NAT open.
    #[arg(long, value_name = "SECONDS", requires = "private_key")]
    pub(crate) keepalive: Option<u16>,
    /// Largest packet in the tunnel, in bytes: 80 less than the MTU of the network that carries the tunnel.
    #[arg(long, value_name = "BYTES", default_value_t = 1_420, value_parser = clap::value_parser!(u32).range(576..=65_400))]
    pub(crate) mtu: u32,
    /// Number of threads, 1 to 16. A single thread serves both directions; several threads are divided between the
    /// directions. Packets of one peer are encrypted or decrypted on one core at a time, packets of several peers in
    /// parallel.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) threads: u8,
    /// Write packets to the TUN one by one, without coalescing.
    #[arg(long)]
    pub(crate) no_coalescing: bool,
    /// Receive and send datagrams one by one, without UDP GRO and GSO.
    #[arg(long)]
    pub(crate) no_trains: bool,
    /// Seconds between prints of the counters. Without this option, counters are printed only at the end.
    #[arg(long, value_name = "SECONDS", default_value_t = u32::MAX, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) figures: u32,
}

impl Options {
    /// Returns `true` if this process must run the tunnel itself instead of starting a process in the
    /// background.
    pub(crate) fn is_foreground(&self) -> bool {
        let by_variable = std::env::var_os("WG_PROCESS_FOREGROUND").is_some_and(|it| it == "1");
        self.foreground || self.private_key.is_some() || by_variable
    }

    /// Returns the number of threads that decrypt: half of all threads, rounded up.
    pub(crate) fn inward_threads(&self) -> usize {
        usize::from(self.threads - self.threads / 2)
    }

    /// Returns the settings from the flags and the key files; `None` without `--private-key`: a client of the
    /// control socket then makes the settings.
    ///
    /// # Errors
    /// If a key file cannot be read, does not contain a key, or is accessible to other users.
    pub(crate) fn settings(&self) -> Result<Option<Settings>> {
        let (Some(private_key), Some(public_key)) = (&self.private_key, self.peer) else {
            return Ok(None);
        };
        let peer = PeerSettings {
            public_key,
            preshared_key: self.preshared_key.as_deref().map(key_in).transpose()?,
            endpoint: self.endpoint,
            keepalive: self.keepalive,
            allowed: self.allowed_ips.iter().map(|it| (Change::Add, it.all)).collect(),
            ..PeerSettings::default()
        };
        let private_key = Some(key_in(private_key)?);
        Ok(Some(Settings { private_key, peers: vec![peer], ..Settings::default() }))
    }
}

fn endpoint(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|error| error.to_string())?;
    found.next().ok_or_else(|| "this name has no address".to_owned())
}
