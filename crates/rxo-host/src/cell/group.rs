//! The multicast group of a connection: its peer sends data to many hosts at once.

use std::net::SocketAddr;

use rxo_wire::FlowKey;

use crate::link::{Channel, ChannelError};

/// The flow from a connection's peer to a multicast group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupFlow {
    /// The flow key from the peer's address and port to the group's address and port.
    pub(crate) key: FlowKey,
    /// The multicast channel of the flow: the peer's address and the group's address.
    pub(crate) channel: Channel,
}

impl GroupFlow {
    /// Returns the flow from `peer` to `group`.
    ///
    /// # Errors
    /// If `group` is not a multicast address that can be joined, or if `peer` has another IP version.
    pub(crate) fn new(peer: SocketAddr, group: SocketAddr) -> Result<Self, ChannelError> {
        let channel = Channel::new(peer.ip(), group.ip())?;
        let no_source = ChannelError::Source { source: peer.ip(), group: group.ip() };
        let key = FlowKey::between(peer, group).ok_or(no_source)?;
        Ok(Self { key, channel })
    }
}
