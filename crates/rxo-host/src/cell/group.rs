//! The group that a connection belongs to: its peer sends text to many hosts at once.

use std::net::SocketAddr;

use rxo_wire::FlowKey;

use crate::link::{Channel, ChannelError};
use crate::settings::pair;

/// What the peer of a connection sends to a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupFlow {
    /// From the peer's address and port to the group's.
    pub(crate) key: FlowKey,
    /// The peer's address and the group's.
    pub(crate) channel: Channel,
}

impl GroupFlow {
    /// What `peer` sends to `group`.
    ///
    /// # Errors
    /// If `group` cannot be joined, or `peer` is of another IP version.
    pub(crate) fn new(peer: SocketAddr, group: SocketAddr) -> Result<Self, ChannelError> {
        let channel = Channel::new(peer.ip(), group.ip())?;
        let no_source = ChannelError::Source { source: peer.ip(), group: group.ip() };
        let key = pair(peer, group).ok_or(no_source)?;
        Ok(Self { key, channel })
    }
}
