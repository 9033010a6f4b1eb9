//! Flushes all flows between two hosts, for packets that may belong to any of them.

use rxo_frame::FrameBuffer;
use rxo_wire::tunnel::Tunnel;
use rxo_wire::{FlowHash, FlowHasher, FlowKey};

use super::Engine;
use crate::FlushReason;
use crate::pairs::IndexEntry;
use crate::slots::Slots;
use crate::store::Store;

/// The key under which the index of hosts lists all flows inside tunnels: an unreadable tunnel packet may
/// belong to any of them.
const IN_TUNNELS: FlowKey = FlowKey::NONE.in_tunnel(Tunnel::Vxlan, 0);

/// Returns the hash under which the index of hosts lists a flow; all flows inside tunnels share one hash.
fn hash_of_hosts(key: &FlowKey, hasher: &FlowHasher) -> FlowHash {
    hasher.hash(&if key.is_in_tunnel() { IN_TUNNELS } else { key.without_ports() })
}

/// Returns `true` if a packet with the addresses of `key`, but of unknown ports, may belong to the flow
/// `held`.
fn may_belong(key: &FlowKey, held: &FlowKey) -> bool {
    held.has_addresses_of(key) || (key.is_in_tunnel() && held.is_in_tunnel())
}

impl<B: FrameBuffer> Engine<B> {
    /// Returns the hash of the two hosts of a flow, including its VLANs.
    pub(super) fn pair(&self, key: &FlowKey) -> FlowHash {
        self.hasher.hash(&key.without_ports())
    }

    /// Flushes every flow between the hosts of `key`, and every flow inside a tunnel, because the frame in `slot`
    /// may contain a segment of any of these flows.
    pub(super) fn flush_hosts(&mut self, key: &FlowKey, slot: u32) {
        self.flush_tunnels(slot);
        self.flush_addresses(key, slot);
    }

    /// Flushes every flow inside a tunnel, because the frame in `slot` may contain a segment of any of these flows.
    pub(super) fn flush_tunnels(&mut self, slot: u32) {
        if self.config.policy.takes_tunnels() {
            self.flush_addresses(&IN_TUNNELS, slot);
        }
    }

    /// Flushes every flow between the addresses of `key`, or, if `key` is inside a tunnel, every flow inside any
    /// tunnel, because the frame in `slot` may belong to any of these flows. Examines only these flows, and the
    /// flows added since the last call.
    fn flush_addresses(&mut self, key: &FlowKey, slot: u32) {
        if self.table.is_empty() {
            return;
        }
        let Self { hasher, store, .. } = self;
        let pair = hash_of_hosts(key, hasher);
        let Store { pairs, slots: Slots { links, .. }, held, marks, .. } = store;
        let from = core::mem::replace(&mut marks.pairs, slot);
        for flow in links.all_used_between(from, slot) {
            pairs.note(flow, hash_of_hosts(&held[usize::from(flow)].key, hasher));
        }
        pairs.search(pair, |flow| {
            let held = &held[usize::from(flow)];
            let tail = held.chain.tail;
            // A flushed flow leaves a stale entry, whose `tail` is no longer the last frame of a chain.
            if tail >= slot || !links.is_last_of(tail, flow) {
                IndexEntry::Gone
            } else if may_belong(key, &held.key) {
                IndexEntry::Meant(tail)
            } else {
                IndexEntry::Other(tail)
            }
        });
        while let Some(flow) = self.store.pairs.next_found() {
            let is_meant = may_belong(key, &self.store.held[usize::from(flow)].key);
            // A flow that does not match was returned because its bucket is crowded.
            let reason = if is_meant { FlushReason::Order } else { FlushReason::Collision };
            self.flush_held(flow, reason, self.now);
        }
    }
}
