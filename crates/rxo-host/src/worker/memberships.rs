//! Connections whose peer sends to a multicast group as well: they join it, get what comes to it, and leave it.
//!
//! Separate from the demultiplexer, which knows one flow of each connection: there are few groups, and only an
//! arrival of no connection's own flow is looked for here.

use rxo_frame::Instant;
use rxo_wire::FlowKey;

use super::connections::Connections;
use super::network::Network;
use crate::cell::GroupFlow;
use crate::receive::Delivered;

/// The group flows of the host's connections.
#[derive(Debug, Default)]
pub(super) struct Memberships {
    members: Vec<Member>,
    /// The places of connections that are to join.
    joining: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    flow: GroupFlow,
    place: u32,
}

impl Memberships {
    /// Takes note that the connection at `place` is to join its group.
    pub(super) fn expect(&mut self, place: u32) {
        self.joining.push(place);
    }

    /// The place of the connection that belongs to the group of the flow `key`, which must have its source too.
    fn find(&self, key: &FlowKey) -> Option<u32> {
        self.members.iter().find(|member| member.flow.key == *key).map(|member| member.place)
    }

    /// Gives an arrival to the connection that belongs to the group of the flow `key`. Without one it is dropped and
    /// counted: nobody answers what was not sent to them alone.
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
        let was_heard = connections.slots.get(place).is_some_and(|slot| slot.is_heard);
        connections.give(place, |cell| cell.on_group_arrival(now, arrival));
        // It does not show that the peer hears this host.
        if let Some(slot) = connections.slots.get_mut(place) {
            slot.is_heard = was_heard;
        }
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Network<B> {
    /// Joins the groups of new connections. One that cannot is reset: its group is another connection's, or there are
    /// too many.
    pub(super) fn join_groups(&mut self, connections: &mut Connections<B>, now: Instant) {
        for place in std::mem::take(&mut self.memberships.joining) {
            let Some(slot) = connections.slots.get(place) else { continue };
            let Some(flow) = slot.cell.group.as_deref().copied() else { continue };
            let is_free = self.memberships.find(&flow.key).is_none();
            if is_free && self.link.join(flow.channel, now).is_ok() {
                self.memberships.members.push(Member { flow, place });
            } else {
                slot.cell.serve(|inner| inner.connection.abort());
                connections.touch(place);
            }
        }
    }

    /// Leaves the group of the connection at `place`, if it has one.
    pub(super) fn leave_group(&mut self, place: u32, now: Instant) {
        let members = &mut self.memberships.members;
        if let Some(index) = members.iter().position(|member| member.place == place) {
            let member = members.swap_remove(index);
            self.link.leave(member.flow.channel, now);
        }
    }
}
