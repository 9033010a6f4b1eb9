//! A channel: a multicast group together with a source. A host that joins the channel receives only packets of
//! this source to the group (RFC 4607).

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

use crate::link::discovery;

/// A source and a multicast group, both IPv4 or both IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    group: IpAddr,
    source: IpAddr,
}

impl Channel {
    /// Returns the channel of packets from `source` to `group`.
    ///
    /// # Errors
    /// [`ChannelError::Group`] if `group` is not a group whose membership hosts report,
    /// [`ChannelError::Source`] if `source` is not the address of a host of the same IP version.
    pub fn new(source: IpAddr, group: IpAddr) -> Result<Self, ChannelError> {
        if !is_reported(group) {
            return Err(ChannelError::Group { group });
        }
        let is_host = !source.is_unspecified() && !source.is_multicast() && !source.is_loopback();
        if !is_host || source.is_ipv4() != group.is_ipv4() {
            return Err(ChannelError::Source { source, group });
        }
        Ok(Self { group, source })
    }

    /// Returns the multicast group of the channel.
    #[must_use]
    pub const fn group(&self) -> IpAddr {
        self.group
    }

    /// Returns the source of the channel.
    #[must_use]
    pub const fn source(&self) -> IpAddr {
        self.source
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.group, self.source)
    }
}

/// The reason for which a channel is invalid or cannot be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChannelError {
    /// The address is not a multicast address, or its group is never reported, because the scope of the group
    /// is this link or this host.
    #[error(
        "{group} is no group that can be joined; choose one of 232.0.0.0/8, or ff3e::8000:0 and above"
    )]
    Group {
        /// The invalid group.
        group: IpAddr,
    },
    /// The source is not the address of a host, or its IP version differs from that of the group.
    #[error(
        "{source} cannot send to {group}; give the address of one host, of the same IP version"
    )]
    Source {
        /// The invalid source.
        r#source: IpAddr,
        /// The group of the channel.
        group: IpAddr,
    },
    /// The link has joined the maximum number of channels already.
    #[error("this host belongs to {most} channels already; leave one first")]
    Full {
        /// The maximum number of joined channels.
        most: usize,
    },
    /// The host has no address of the group's IP version, so it cannot send reports.
    #[error("no address of the IP version of {group}; give the host one")]
    Version {
        /// The group that the host cannot join.
        group: IpAddr,
    },
}

/// Returns `true` if membership of `group` is reported. RFC 3376, section 5 and RFC 4541 exclude
/// 224.0.0.0/24; RFC 3810, section 6 excludes the all-nodes group and the scopes 0 and 1.
fn is_reported(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(ip) => ip.is_multicast() && ip.octets()[..3] != [224, 0, 0],
        IpAddr::V6(ip) => {
            ip.is_multicast() && ip.octets()[1] & 0xf > 1 && ip != discovery::ALL_NODES
        }
    }
}
