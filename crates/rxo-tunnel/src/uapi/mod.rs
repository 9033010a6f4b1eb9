//! The text protocol of the control socket, which `wg` speaks: requests as values, answers as text.
//!
//! The protocol is that of WireGuard's programs outside the kernel (their *cross-platform interface*): lines
//! `key=value`, an empty line behind each request and each answer. Everything here is pure: bytes come in, a
//! [`Request`] or an error number comes out. A request with an error anywhere is refused as a whole.

mod read;
mod write;

use std::net::SocketAddr;
use std::time::Duration;

use ip_network::IpNetwork;

pub(crate) use self::read::Reader;
pub(crate) use self::write::{answer, figures};
use crate::keys::Key;

/// The reason why a request is refused, as the negative error number in the answer's last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A key is unknown, or a value is not what the key takes.
    Invalid = -22,
    /// A line has no `=`.
    Protocol = -71,
    /// The port is in use.
    PortInUse = -98,
    /// The system does not permit the change, such as a mark without privilege.
    NotPermitted = -1,
    /// The request is longer than [`read::MOST_BYTES`].
    TooLong = -90,
}

/// A request on the control socket, as `wg` sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Asks for settings and figures.
    Get,
    /// Changes settings.
    Set(Settings),
}

/// Changes of the interface; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The private key; zeros remove it.
    pub(crate) private_key: Option<Key>,
    /// The UDP port; 0 for any free one.
    pub(crate) listen_port: Option<u16>,
    /// The mark of outer packets; 0 for none.
    pub(crate) mark: Option<u32>,
    /// `true` if all peers are removed before `peers` are added.
    pub(crate) replaces_peers: bool,
    pub(crate) peers: Vec<PeerSettings>,
}

/// Changes of one peer, in the order of the request; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    pub(crate) public_key: Key,
    pub(crate) is_removed: bool,
    /// `true` if nothing happens unless the peer exists.
    pub(crate) only_updates: bool,
    /// The preshared key; zeros remove it.
    pub(crate) preshared_key: Option<Key>,
    pub(crate) endpoint: Option<SocketAddr>,
    /// Seconds between empty packets; 0 for none.
    pub(crate) keepalive: Option<u16>,
    pub(crate) replaces_allowed: bool,
    pub(crate) allowed: Vec<(Change, IpNetwork)>,
}

/// The change of an allowed network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    Remove,
}

/// Settings and figures of the interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) private_key: Option<Key>,
    pub(crate) listen_port: u16,
    pub(crate) mark: u32,
    pub(crate) peers: Vec<PeerStatus>,
}

/// Settings and figures of one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerStatus {
    pub(crate) public_key: Key,
    pub(crate) preshared_key: Option<Key>,
    pub(crate) endpoint: Option<SocketAddr>,
    /// The time of the last handshake since 1970; zero if there was none.
    pub(crate) handshake_at: Duration,
    /// Bytes of authenticated datagrams, without IP and UDP headers.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) keepalive: u16,
    pub(crate) allowed: Vec<IpNetwork>,
}
