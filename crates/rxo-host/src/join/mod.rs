//! Joins a cast on behalf of another host, which does not support groups.
//!
//! The module is sans-IO. Its inputs are the frames of both directions. Its outputs are decisions about frames
//! from the network, and membership reports to send to the network. When the host opens a connection to the
//! sender, the group is joined. Segments to the group are rewritten into segments of that connection
//! (`filter.rs`, `rewrite.rs`). All other frames pass unchanged in both directions.

mod filter;
mod rewrite;

use std::iter;
use std::net::SocketAddr;

use rxo_frame::{Frame, Instant};
use rxo_wire::{PROTOCOL_ICMPV6, PROTOCOL_IGMP, Transport, parse};

use self::filter::{Filter, MembershipChange};
pub use self::filter::{FrameDecision, JoinCounters};
use crate::link::{Channel, ChannelError, IpCidr, Link, LinkConfig};

/// A host's membership in the group of a cast, and its connection to the sender as another machine observes
/// it.
#[derive(Debug)]
pub struct Join {
    filter: Filter,
    channel: Channel,
    /// The link that reports the membership on behalf of the host; `None` while the host is not a member.
    member: Option<Link>,
}

impl Join {
    /// Creates the state for a host that receives the cast that `sender` sends to `group`.
    ///
    /// # Errors
    /// If no host can join this group with this sender.
    pub fn new(sender: SocketAddr, group: SocketAddr) -> Result<Self, ChannelError> {
        let channel = Channel::new(sender.ip(), group.ip())?;
        Ok(Self { filter: Filter::new(sender, group), channel, member: None })
    }

    /// Returns the group and its sender.
    #[must_use]
    pub const fn channel(&self) -> Channel {
        self.channel
    }

    /// Returns the counters of segments to the group.
    #[must_use]
    pub const fn counters(&self) -> JoinCounters {
        self.filter.counts
    }

    /// Updates the state with the Ethernet frame `bytes`, which the host sends. The caller forwards the frame
    /// unchanged. A frame that opens a connection to the sender from an address that no host can have joins nothing.
    pub fn on_host_frame(&mut self, bytes: &[u8], now: Instant) {
        match self.filter.on_host_frame(bytes, now) {
            MembershipChange::Nothing => {}
            MembershipChange::Opens { receiver, mac } => {
                let address = IpCidr::of_host(receiver.ip());
                let member = Link::new(LinkConfig::ethernet(mac, vec![address])).ok();
                self.member = member.and_then(|mut member| {
                    member.join(self.channel, now).is_ok().then_some(member)
                });
            }
            MembershipChange::Ends => {
                if let Some(member) = &mut self.member {
                    member.leave(self.channel, now);
                }
            }
        }
    }

    /// Decides if a frame from the network passes unchanged, is rewritten, or is dropped. The frame must be Ethernet
    /// without a partial checksum. Queries about group memberships are also answered by [`Join::reports`].
    pub fn decide<B: AsRef<[u8]>>(&mut self, frame: &Frame<B>, now: Instant) -> FrameDecision {
        let bytes = frame.bytes();
        if let Some(member) = self.member.as_mut().filter(|_| is_query(bytes)) {
            member.on_frame(frame, now);
        }
        self.filter.decide(bytes, now)
    }

    /// Returns the membership reports that are due now, as frames for the network.
    pub fn reports(&mut self, now: Instant) -> impl Iterator<Item = Vec<u8>> {
        if let Some(member) = &mut self.member {
            member.on_timeout(now);
        }
        iter::from_fn(move || self.member.as_mut()?.poll_transmit())
    }

    /// Returns the time at which the next report is due; `None` if no report is pending.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.member.as_ref().and_then(Link::poll_at)
    }
}

/// Returns `true` if the frame `bytes` may be a query about groups.
fn is_query(bytes: &[u8]) -> bool {
    parse(bytes).is_ok_and(|parsed| match parsed.transport {
        Transport::Other(PROTOCOL_IGMP) => true,
        Transport::Other(PROTOCOL_ICMPV6) => {
            bytes.get(parsed.at.transport as usize) == Some(&MLD_QUERY)
        }
        _ => false,
    })
}

const MLD_QUERY: u8 = 130;
