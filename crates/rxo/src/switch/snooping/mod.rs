//! Snooping of IGMP and MLD: frames of a multicast group are forwarded only to ports whose devices have joined
//! the group (RFC 4541).
//!
//! This module is separate from the table of addresses, because a group can be at many ports, each with its own expiry
//! time, and is learned from messages instead of source addresses. Ports of routers, and ports that may route, receive
//! the frames of every group. Without a querier (a router that asks for memberships), all memberships would expire. So
//! while there is no querier, the frames of every group are forwarded to all ports.
//!
//! # Contract
//! No clock: time is an argument. Memory is bounded: [`MOST_GROUPS`] for each port. A port that joins more
//! groups receives the frames of all groups for a while, at no cost to other ports. Groups are distinguished by
//! their Ethernet address, which 32 IPv4 groups share: a port may get too many frames, never too few.

mod messages;

use std::collections::HashMap;
use std::time::Duration;

use rxo_frame::Instant;

use super::packet::Packet;
use super::{MacAddress, Port, PortSet};

use messages::{Member, MembershipMessage};

/// Maximum number of groups of a port.
const MOST_GROUPS: usize = 256;
/// The time without a report after which a membership is forgotten (RFC 3376, section 8.4; RFC 3810, section
/// 9.4).
const MEMBERSHIP: Duration = Duration::from_secs(260);
/// The time without a general query after which a querier counts as gone (RFC 3376, section 8.5).
const QUERIER: Duration = Duration::from_secs(255);
/// The time in which other members at a port report their membership, after one has left (RFC 3376, section
/// 8.8).
const LAST_MEMBER: Duration = Duration::from_secs(2);
/// Minimum time between two searches of the table for expired memberships.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

/// The version of IP of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    V4,
    V6,
}

/// The memberships of all ports.
#[derive(Debug)]
pub(super) struct Snooping {
    /// The ports that have joined each group, and the time at which each membership expires. The hash is
    /// keyed at random.
    groups: HashMap<(u16, MacAddress), Vec<(Port, Instant)>>,
    /// The time of the last general query, by VLAN and IP version. Only queries of routers are recorded.
    queries: HashMap<(u16, Family), Instant>,
    /// The number of groups of each port.
    counts: Vec<usize>,
    /// The time until which each port receives the frames of all groups, because it has joined too many groups;
    /// `None` for a port that has not joined too many.
    overflows: Vec<Option<Instant>>,
    next_search: Instant,
}

/// The receivers of a frame for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receivers {
    /// All ports of the VLAN.
    All,
    /// Only ports of routers, because the frame is a report of memberships (RFC 4541, section 2.1.1, item 1).
    Routers,
    /// The ports in this set, and the ports of routers.
    Members(PortSet),
}

impl Snooping {
    pub(super) fn new(ports: usize) -> Self {
        Self {
            groups: HashMap::new(),
            queries: HashMap::new(),
            counts: vec![0; ports],
            overflows: vec![None; ports],
            next_search: Instant::ZERO,
        }
    }

    /// Returns the receivers of a frame for `group` that arrived at `from`, and records the memberships that
    /// the frame reports.
    pub(super) fn receivers(
        &mut self,
        (from, is_router): (Port, bool),
        (vlan, group): (u16, MacAddress),
        packet: &Packet<'_>,
        now: Instant,
    ) -> Receivers {
        let Some(family) = family(group) else { return Receivers::All };
        match messages::read(packet) {
            Some(MembershipMessage::GeneralQuery(family)) if is_router => {
                self.queries.insert((vlan, family), now);
                return Receivers::All;
            }
            Some(MembershipMessage::GeneralQuery(_)) => return Receivers::All,
            Some(MembershipMessage::Members(members)) => {
                if !is_router {
                    members.for_each(|member| self.note(from, vlan, member, now));
                }
                return Receivers::Routers;
            }
            None => {}
        }
        let is_asked = |asked: &Instant| now.since(*asked) <= QUERIER;
        if is_always_flooded(group) || !self.queries.get(&(vlan, family)).is_some_and(is_asked) {
            return Receivers::All;
        }
        Receivers::Members(self.members((vlan, group), now))
    }

    /// Forgets the memberships of `port`, because its device is gone.
    pub(super) fn forget(&mut self, port: Port) {
        self.retain(|member, _| member != port);
        self.overflows[port.index()] = None;
    }

    /// Returns the number of memberships. Expired memberships count until their space is needed.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.counts.iter().sum()
    }

    fn members(&self, group: (u16, MacAddress), now: Instant) -> PortSet {
        let known = self.groups.get(&group).into_iter().flatten();
        let known = known.filter(|(_, until)| now < *until).map(|(port, _)| *port);
        let greedy = self.overflows.iter().enumerate();
        let greedy = greedy.filter(|(_, until)| until.is_some_and(|until| now < until));
        known.chain(greedy.map(|(index, _)| Port::nth(index))).collect()
    }

    fn note(&mut self, port: Port, vlan: u16, member: Member, now: Instant) {
        let group = (vlan, member.group);
        if is_always_flooded(member.group) {
            return;
        }
        let members = self.groups.get_mut(&group);
        let known = members.and_then(|all| all.iter_mut().find(|(own, _)| *own == port));
        match known {
            Some((_, until)) if member.joins => *until = now + MEMBERSHIP,
            // Other members behind the port have this time to report their membership.
            Some((_, until)) => *until = (*until).min(now + LAST_MEMBER),
            None if member.joins => self.join(port, group, now),
            None => {}
        }
    }

    fn join(&mut self, port: Port, group: (u16, MacAddress), now: Instant) {
        if self.counts[port.index()] >= MOST_GROUPS && now >= self.next_search {
            self.next_search = now + SEARCH_EVERY;
            self.retain(|_, until| now < until);
        }
        if self.counts[port.index()] >= MOST_GROUPS {
            self.overflows[port.index()] = Some(now + MEMBERSHIP);
            return;
        }
        self.groups.entry(group).or_default().push((port, now + MEMBERSHIP));
        self.counts[port.index()] += 1;
    }

    /// Keeps the memberships for which `stays` is true, and removes all others.
    fn retain(&mut self, stays: impl Fn(Port, Instant) -> bool) {
        let Self { groups, counts, .. } = self;
        groups.retain(|_, members| {
            members.retain(|(port, until)| {
                let stays = stays(*port, *until);
                counts[port.index()] -= usize::from(!stays);
                stays
            });
            !members.is_empty()
        });
    }
}

/// Returns the version of IP whose groups have this address; `None` for any other address.
pub(super) const fn family(group: MacAddress) -> Option<Family> {
    match group.0 {
        [0x01, 0x00, 0x5e, 0..=0x7f, ..] => Some(Family::V4),
        [0x33, 0x33, ..] => Some(Family::V6),
        _ => None,
    }
}

/// Returns `true` for a group that no host reports although all hosts are in it: 224.0.0.0/24 (RFC 4541,
/// section 2.1.2), all nodes (section 3), and groups of a narrower scope.
const fn is_always_flooded(group: MacAddress) -> bool {
    matches!(group.0, [0x01, 0x00, 0x5e, 0, 0, _] | [0x33, 0x33, 0, 0, 0, 1])
}

#[cfg(test)]
mod tests;
