//! The connections of a worker with their indices and flows, its listeners, and the list of connections to be
//! served.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use rxo_frame::Instant;
use rxo_tcp::{Connection, TimeWait};
use rxo_wire::{FlowKey, SeqNumber};

use super::clock::Clock;
use super::counters::HostCounters;
use super::line::Turn;
use super::network::Network;
use super::orphans::Orphans;
use super::slots::{Slot, Slots};
use crate::HostConfig;
use crate::buffer::Buffer;
use crate::cell::{ArrivalOutcome, Cell};
use crate::demux::Demux;
use crate::fast::AckState;
use crate::ports::{PortChange, Ports};
use crate::post::{Command, Post, covers};
use crate::socket::Listening;
use crate::transmit::Path;

/// All connections and listeners of a worker.
#[derive(Debug)]
pub(super) struct Connections<B> {
    pub(super) post: Arc<Post<B>>,
    pub(super) commands: Receiver<Command<B>>,
    pub(super) demux: Demux,
    pub(super) slots: Slots<B>,
    pub(super) listeners: Vec<Arc<Listening<B>>>,
    /// The indices of the connections to be served, in the current round or a later one (`shares.rs`).
    pub(super) dirty: VecDeque<u32>,
    /// The number of connections at the front of `dirty` that are served first because of their handshakes.
    first: usize,
    pub(super) orphans: Orphans,
    /// Changes in the use of pairs of sockets that [`Ports`] has not applied yet, because a thread was choosing
    /// a port.
    port_changes: Vec<PortChange>,
    pub(super) counters: HostCounters,
}

impl<B> Connections<B> {
    pub(super) fn new(
        config: &HostConfig,
        post: Arc<Post<B>>,
        commands: Receiver<Command<B>>,
    ) -> Self {
        Self {
            post,
            commands,
            demux: Demux::new(config.secret[0]),
            slots: Slots::new(),
            listeners: Vec::new(),
            dirty: VecDeque::new(),
            first: 0,
            orphans: Orphans::new(config.orphans),
            port_changes: Vec::new(),
            counters: HostCounters::default(),
        }
    }

    /// Returns `true` if some connections are still to be served, in the next round.
    pub(super) fn has_more_to_serve(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Marks the connection at index `place` to be served.
    pub(super) fn touch(&mut self, place: u32) {
        if let Some(slot) = self.slots.get_mut(place) {
            slot.touch(place, &mut self.dirty);
        }
    }

    /// Marks the connection at index `place` to be served before all others. A handshake must not wait behind
    /// other connections: the peer measures its minimum round-trip time in the handshake, and a sender with a
    /// long minimum round-trip time sends small GSO frames.
    #[cold]
    fn touch_first(&mut self, place: u32) {
        if let Some(slot) = self.slots.get_mut(place)
            && !std::mem::replace(&mut slot.is_dirty, true)
        {
            self.dirty.insert(self.first, place);
            self.first += 1;
        }
    }

    /// Removes and returns the index of the next connection to be served; `None` if there is none.
    #[inline]
    pub(super) fn next_dirty(&mut self) -> Option<u32> {
        self.first = self.first.saturating_sub(1);
        self.dirty.pop_front()
    }

    /// Marks the connection in `cell` to be served, unless it was removed.
    pub(super) fn touch_cell(&mut self, cell: &Arc<Cell<B>>) {
        let place = cell.place.load(Ordering::Relaxed);
        if self.slots.get(place).is_some_and(|slot| Arc::ptr_eq(&slot.cell, cell)) {
            self.touch(place);
        }
    }

    pub(super) fn free_port(&mut self, pair: &FlowKey) {
        if Ports::counts(pair.source_port()) {
            self.port_changes.push(PortChange::Free(*pair));
        }
    }

    pub(super) fn change_ports(&mut self) {
        if !self.port_changes.is_empty() {
            self.post.ports().change(&mut self.port_changes);
        }
    }

    /// Returns the listener for packets to the destination of `key`; `None` if there is none.
    pub(super) fn listener(&self, key: &FlowKey) -> Option<Arc<Listening<B>>> {
        let (address, port) = (key.destination(), key.destination_port());
        let is_it = |listening: &&Arc<Listening<B>>| {
            listening.address.port() == port && covers(listening.address.ip(), address)
        };
        self.listeners.iter().find(is_it).cloned()
    }

    /// Removes the connection at index `place`. `left` is its TIME-WAIT state with the end of TIME-WAIT; `None`
    /// if the connection does not enter TIME-WAIT.
    pub(super) fn remove(
        &mut self,
        place: u32,
        left: Option<(TimeWait, Instant)>,
        clock: &mut Clock,
    ) {
        let Some(slot) = self.slots.remove(place) else { return };
        slot.cell.place.store(u32::MAX, Ordering::Relaxed);
        let (pair, key) = (slot.cell.pair, slot.cell.pair.reversed());
        self.demux.remove(&key);
        clock.timers.set(place, None);
        if let Some(listener) = &slot.listener {
            listener.one_opens_no_more();
        }
        if slot.orphan.is_some() {
            self.orphans.remove();
        }
        self.post.release_socket();
        match left {
            None => self.free_port(&pair),
            Some((left, until)) => {
                let evicted = clock.time_waits.insert(key, left, until);
                self.count_evicted(evicted);
            }
        }
    }

    /// Restarts the timer of a connection in TIME-WAIT.
    pub(super) fn restart_time_wait(&mut self, key: &FlowKey, until: Instant, clock: &mut Clock) {
        let evicted = clock.time_waits.restart(key, until);
        self.count_evicted(evicted);
    }

    fn count_evicted(&mut self, evicted: Option<FlowKey>) {
        if let Some(key) = evicted {
            self.counters.tcp.time_waits_given_up += 1;
            self.free_port(&key.reversed());
        }
    }

    /// Removes a connection in TIME-WAIT and frees its port.
    pub(super) fn remove_time_wait(&mut self, key: &FlowKey, clock: &mut Clock) {
        clock.time_waits.remove(key);
        self.free_port(&key.reversed());
    }
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Connections<B> {
    /// Opens a connection for an application. Aborts the connection in the unlikely case that a peer has just
    /// opened a connection between the same pair of sockets.
    pub(super) fn open(&mut self, cell: Arc<Cell<B>>, clock: &mut Clock, network: &mut Network<B>) {
        let key = cell.pair.reversed();
        if self.demux.find(&key).is_none() && clock.time_waits.get_mut(&key).is_none() {
            let is_member = cell.group.is_some();
            let place = self.add(cell, None, network);
            if is_member {
                network.memberships.expect(place);
            }
            return;
        }
        // Dropped after the lock is released: a reader may own streams, whose drop takes locks.
        let _reader = cell.serve(|inner| {
            inner.connection.abort();
            inner.reader.take()
        });
        cell.signal.notify();
        self.post.release_socket();
    }

    /// Adds the connection in `cell` and returns its index.
    pub(super) fn add(
        &mut self,
        cell: Arc<Cell<B>>,
        listener: Option<Arc<Listening<B>>>,
        network: &Network<B>,
    ) -> u32 {
        let key = cell.pair.reversed();
        let path = Path::new(cell.pair, &network.shape);
        let is_active = listener.is_none();
        if !is_active && Ports::counts(cell.pair.source_port()) {
            self.port_changes.push(PortChange::Taken(cell.pair));
        }
        let slot = Slot {
            cell: Arc::clone(&cell),
            path,
            resolved_until: None,
            has_received: false,
            ids: 0,
            is_unresolved: false,
            served_at: Instant::ZERO,
            is_dirty: false,
            turn: Turn::default(),
            kept: None,
            owned_until: SeqNumber::default(),
            listener,
            orphan: None,
            is_active,
            acks: AckState::new(network.link.may_arrive(&key)),
        };
        let place = self.slots.insert(slot);
        cell.place.store(place, Ordering::Relaxed);
        self.demux.insert(&key, place);
        self.touch(place);
        place
    }

    /// Calls `give` to pass an arrival to the connection at index `place`, and counts the outcome.
    pub(super) fn give(&mut self, place: u32, give: impl FnOnce(&Cell<B>) -> ArrivalOutcome) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        slot.has_received = true;
        let is_opening = slot.is_active && !slot.acks.terms.is_synchronized;
        self.counters.deliveries += 1;
        match give(&slot.cell) {
            ArrivalOutcome::Taken if is_opening => self.touch_first(place),
            ArrivalOutcome::Taken => self.touch(place),
            // The thread that holds the lock marks the connection.
            ArrivalOutcome::Waits => self.counters.tcp.put_off += 1,
            // Touched, because the connection may be able to take the segments that were put off before.
            ArrivalOutcome::Dropped => {
                self.counters.tcp.backlog_drops += 1;
                self.touch(place);
            }
        }
    }

    /// Passes an ICMP error to the connection that sends as `pair`. The error is lost if an application holds
    /// the lock.
    pub(super) fn notify(
        &mut self,
        pair: &FlowKey,
        notify: impl FnOnce(&mut Connection<Buffer<B>>),
    ) {
        let Some(place) = self.demux.find(&pair.reversed()) else { return };
        if let Some(slot) = self.slots.get(place) {
            slot.cell.serve(|inner| notify(&mut inner.connection));
            self.touch(place);
        }
    }

    /// Resets all connections and closes all listeners.
    pub(super) fn abort_all(&mut self) {
        for listening in std::mem::take(&mut self.listeners) {
            self.unlisten(&listening);
            listening.signal.notify();
        }
        let cells: Vec<_> = self.slots.iter().map(|(_, slot)| Arc::clone(&slot.cell)).collect();
        for cell in cells {
            // Blocking is allowed, since the worker has ended.
            cell.with(|inner| inner.connection.abort());
            cell.signal.notify();
            self.touch_cell(&cell);
        }
    }

    pub(super) fn unlisten(&mut self, listening: &Arc<Listening<B>>) {
        self.listeners.retain(|other| !Arc::ptr_eq(other, listening));
        let is_its = |slot: &Slot<B>| {
            slot.listener.as_ref().is_some_and(|listener| Arc::ptr_eq(listener, listening))
        };
        let opening: Vec<_> = self
            .slots
            .iter()
            .filter(|(_, slot)| is_its(slot))
            .map(|(_, slot)| Arc::clone(&slot.cell))
            .collect();
        let waiting = std::iter::from_fn(|| listening.pop());
        for cell in opening.into_iter().chain(waiting) {
            // Blocks here too: a reset that is skipped would not be repeated.
            cell.with(|inner| inner.connection.abort());
            self.touch_cell(&cell);
        }
    }
}
