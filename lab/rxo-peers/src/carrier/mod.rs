//! Carriers: programs of others that carry TCP and UDP between two networks, as published and with rxo inside.
//!
//! * [`Tunnel`]: a WireGuard program at each end.
//! * `proxy`: tun2proxy takes packets from a TUN of one network, and carries on their connections in the other.
//! * `card`: a network card of a virtual machine, whose guest is this process.

mod card;
mod proxy;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rxo_testbed::Namespace;
use rxo_testbed::error::Result;

use self::card::Card;
use self::proxy::Proxy;
use crate::tunnel::{Tunnel, TunnelKind, TunnelProgram};

/// The kinds of carriers that exist with rxo inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierKind {
    /// A WireGuard tunnel.
    Tunnel(TunnelKind),
    /// tun2proxy, with the user-space stack ipstack.
    Proxy,
    /// A TAP behind vhost-device-net.
    Card,
}

/// A folder of built programs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The folder.
    pub folder: PathBuf,
    /// `true` if these are the patched programs.
    pub have_rxo: bool,
}

/// Two networks with a carrier between them.
#[derive(Debug)]
pub struct Carrier(Kind);

#[derive(Debug)]
enum Kind {
    Tunnel(Box<Tunnel>),
    Proxy(Proxy),
    Card(Card),
}

/// A direction in which data can be sent through a carrier.
#[derive(Clone, Debug)]
pub struct Way<'c> {
    /// The direction in words.
    pub label: &'static str,
    /// The network that opens connections.
    pub from: &'c Namespace,
    /// The network that accepts them.
    pub to: &'c Namespace,
    /// The addresses of `to`.
    pub addresses: Vec<IpAddr>,
    /// `true` if the accepting side sends the data.
    pub is_download: bool,
}

impl CarrierKind {
    /// The carriers with a patch in `lab/patches`.
    pub const PATCHED: [Self; 5] = [
        Self::Tunnel(TunnelKind::BoringtunCli),
        Self::Tunnel(TunnelKind::Gotatun),
        Self::Tunnel(TunnelKind::WireguardGo),
        Self::Proxy,
        Self::Card,
    ];

    /// Returns the program's name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tunnel(kind) => kind.name(),
            Self::Proxy => "tun2proxy",
            Self::Card => "vhost-device-net",
        }
    }

    /// Returns `true` if there is a program at each end.
    #[must_use]
    pub const fn has_two_ends(self) -> bool {
        matches!(self, Self::Tunnel(_))
    }

    /// Makes two networks and starts the program between them. A carrier with two ends has the program of `near` at one,
    /// and that of `far` at the other.
    ///
    /// # Errors
    /// If the networks cannot be made, or a program ends at once; the message contains its output.
    pub fn start(self, near: &Programs, far: &Programs) -> Result<Carrier> {
        Ok(Carrier(match self {
            Self::Tunnel(kind) => {
                let program = |programs: &Programs| TunnelProgram::foreign(kind, &programs.folder);
                Kind::Tunnel(Box::new(Tunnel::start(&program(near), &program(far))?))
            }
            Self::Proxy => Kind::Proxy(Proxy::start(far)?),
            Self::Card => Kind::Card(Card::start(&far.folder)?),
        }))
    }
}

impl Carrier {
    /// Returns the directions in which data can be sent.
    #[must_use]
    pub fn ways(&self) -> Vec<Way<'_>> {
        let way = |label, from, to, addresses: &[IpAddr]| Way {
            label,
            from,
            to,
            addresses: addresses.to_vec(),
            is_download: false,
        };
        match &self.0 {
            Kind::Tunnel(tunnel) => vec![
                way("to the far end", tunnel.near(), tunnel.far(), &Tunnel::FAR),
                way("to the near end", tunnel.far(), tunnel.near(), &Tunnel::NEAR),
            ],
            Kind::Proxy(proxy) => {
                let upload = way("upload", &proxy.near, &proxy.far, &Proxy::FAR);
                vec![upload.clone(), Way { label: "download", is_download: true, ..upload }]
            }
            Kind::Card(card) => vec![
                way("to the guest", &card.far, &card.near, &[Card::NEAR]),
                way("from the guest", &card.near, &card.far, &[Card::FAR]),
            ],
        }
    }

    /// Returns `true` if connections through the carrier end. Those through tun2proxy as published do not, because its stack
    /// ignores a FIN that comes with data.
    #[must_use]
    pub const fn ends_connections(&self) -> bool {
        !matches!(&self.0, Kind::Proxy(Proxy { has_rxo: false, .. }))
    }

    /// Returns the process ids of the programs.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        match &self.0 {
            Kind::Tunnel(tunnel) => tunnel.processes().to_vec(),
            Kind::Proxy(proxy) => vec![proxy.process.id()],
            Kind::Card(card) => vec![card.process.id()],
        }
    }
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}
