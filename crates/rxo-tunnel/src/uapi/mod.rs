//! The text protocol between `wg` and the control socket. Requests are parsed to values, and answers are
//! formatted as text.
//!
//! The protocol is the *cross-platform interface* of WireGuard implementations in user space: lines
//! `key=value`, and an empty line at the end of each request and each answer. All functions are pure: they turn
//! bytes into a [`Request`] or an error number. A request that contains an error is refused as a whole.

mod read;
mod write;

use std::net::SocketAddr;
use std::time::Duration;

use ip_network::IpNetwork;

pub(crate) use self::read::Reader;
pub(crate) use self::write::{answer, figures};
use crate::keys::Key;

/// The reason for which a request is refused. The value is the negative error number in the answer's last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request has an unknown key, or a value that is invalid for its key.
    Invalid = -22,
    /// A line of the request has no `=`.
    Protocol = -71,
    /// The requested port is in use.
    PortInUse = -98,
    /// The system does not permit the change: marking packets requires privileges.
    NotPermitted = -1,
    /// The request is longer than [`read::MOST_BYTES`].
    TooLong = -90,
}

/// A request on the control socket, as `wg` sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Requests the settings and counters of the interface and its peers.
    Get,
    /// Changes settings of the interface and its peers.
    Set(Settings),
}

/// Changes to the settings of the interface; `None` leaves a setting unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The new private key; a key of zeros removes the private key.
    pub(crate) private_key: Option<Key>,
    /// The new UDP port; 0 chooses any free port.
    pub(crate) listen_port: Option<u16>,
    /// The new mark (`SO_MARK`) of sent datagrams; 0 means no mark.
    pub(crate) mark: Option<u32>,
    /// `true` if all peers are removed before `peers` are added.
    pub(crate) replaces_peers: bool,
    pub(crate) peers: Vec<PeerSettings>,
}

/// Changes to the settings of one peer; `None` leaves a setting unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    pub(crate) public_key: Key,
    pub(crate) is_removed: bool,
    /// `true` if the request must not add the peer: it only changes a peer that already exists.
    pub(crate) only_updates: bool,
    /// The new preshared key; a key of zeros removes the preshared key.
    pub(crate) preshared_key: Option<Key>,
    pub(crate) endpoint: Option<SocketAddr>,
    /// The number of seconds between empty packets, which keep a NAT's mapping open; 0 sends none.
    pub(crate) keepalive: Option<u16>,
    pub(crate) replaces_allowed: bool,
    pub(crate) allowed: Vec<(Change, IpNetwork)>,
}

/// The kind of change to a peer's allowed networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    Remove,
}

/// The settings of the interface, with the settings and counters of its peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) private_key: Option<Key>,
    pub(crate) listen_port: u16,
    pub(crate) mark: u32,
    pub(crate) peers: Vec<PeerStatus>,
}

/// The settings and counters of one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerStatus {
    pub(crate) public_key: Key,
    pub(crate) preshared_key: Option<Key>,
    pub(crate) endpoint: Option<SocketAddr>,
    /// The time of the last handshake, as the duration since 1970 UTC; zero if there was no handshake.
    pub(crate) handshake_at: Duration,
    /// Number of bytes in datagrams sent to the peer, without IP and UDP headers. `received_bytes` counts only
    /// authenticated datagrams.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) keepalive: u16,
    pub(crate) allowed: Vec<IpNetwork>,
}
