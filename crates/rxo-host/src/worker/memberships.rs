//! Connections whose peer also sends to a multicast group: they join the group, receive its packets, and
//! leave it.
//!
//! The table is separate from the demultiplexer, which has one flow per connection. There are few groups, and
//! this table is searched only for packets to a group.

use rxo_frame::Instant;
use rxo_wire::FlowKey;

use super::connections::Connections;
use super::network::Network;
use super::restoring::Restoring;
use crate::cell::GroupFlow;
use crate::receive::Delivered;

/// The group flows of the host's connections.
#[derive(Debug, Default)]
pub(super) struct Memberships {
    members: Vec<Member>,
    /// The indices of connections that have not joined their group yet.
    joining: Vec<u32>,
}

#[derive(Debug)]
struct Member {
    flow: GroupFlow,
    place: u32,
    restoring: Restoring,
}

impl Memberships {
    /// Records that the connection at index `place` must join its group.
    pub(super) fn expect(&mut self, place: u32) {
        self.joining.push(place);
    }

    /// Returns the index of the connection that has joined the group of the flow `key`, whose source must
    /// match too; `None` if there is none.
    fn find(&self, key: &FlowKey) -> Option<u32> {
        self.members.iter().find(|member| member.flow.key == *key).map(|member| member.place)
    }

    /// Passes an arrival to the connection that has joined the group of the flow `key`. Without such a
    /// connection, drops and counts the arrival: multicast packets are never answered with a reset.
    pub(super) fn take<B: AsRef<[u8]> + Default + Send + Sync + 'static>(
        &self,
        connections: &mut Connections<B>,
        key: &FlowKey,
        now: Instant,
        arrival: Delivered<'_, B>,
    ) {
        let Some(place) = self.find(key) else {
            connections.counters.group_strangers += 1;
            return;
        };
        let had_received = connections.slots.get(place).is_some_and(|slot| slot.has_received);
        connections.give(place, |cell| cell.on_group_arrival(now, arrival));
        // A packet to the group does not show that the peer receives this host's packets.
        if let Some(slot) = connections.slots.get_mut(place) {
            slot.has_received = had_received;
        }
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Network<B> {
    /// Stores a parity packet: a datagram of the flow `key` to a group.
    pub(super) fn collect(
        &mut self,
        connections: &mut Connections<B>,
        key: &FlowKey,
        payload: &[u8],
    ) {
        let members = &mut self.memberships.members;
        match members.iter_mut().find(|member| member.flow.key == *key) {
            Some(member) => member.restoring.collect(payload),
            None => connections.counters.group_strangers += 1,
        }
    }

    /// Restores lost segments from the parity packets that have arrived, for all connections that have joined
    /// a group.
    pub(super) fn restore_lost(&mut self, connections: &mut Connections<B>, now: Instant) {
        for Member { place, restoring, .. } in &mut self.memberships.members {
            restoring.restore_lost(connections, *place, now);
        }
    }

    /// Joins the groups of new connections. A connection is reset if its group belongs to another connection,
    /// or if the host has joined too many groups.
    pub(super) fn join_groups(&mut self, connections: &mut Connections<B>, now: Instant) {
        for place in std::mem::take(&mut self.memberships.joining) {
            let Some(slot) = connections.slots.get(place) else { continue };
            let Some(flow) = slot.cell.group.as_deref().copied() else { continue };
            let is_free = self.memberships.find(&flow.key).is_none();
            if is_free && self.link.join(flow.channel, now).is_ok() {
                let restoring = Restoring::default();
                self.memberships.members.push(Member { flow, place, restoring });
            } else {
                slot.cell.serve(|inner| inner.connection.abort());
                connections.touch(place);
            }
        }
    }

    /// Leaves the group of the connection at index `place`, if the connection has a group.
    pub(super) fn leave_group(&mut self, place: u32, now: Instant) {
        let members = &mut self.memberships.members;
        if let Some(index) = members.iter().position(|member| member.place == place) {
            let member = members.swap_remove(index);
            self.link.leave(member.flow.channel, now);
        }
    }
}
