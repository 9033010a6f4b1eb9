//! What the worker has beside device and engine, and what applications ask of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use rxo_device::SinkCapabilities;
use rxo_frame::Instant;
use rxo_tcp::State;
use rxo_wire::{FlowKey, SeqNumber};

use super::counters::HostCounters;
use super::kept::Kept;
use super::paths::Paths;
use super::slots::{Slot, Slots};
use super::timers::Timers;
use crate::cell::Cell;
use crate::demux::Demux;
use crate::link::{Allowance, Link};
use crate::post::{Command, Post, covers};
use crate::settings::Settings;
use crate::socket::{Listening, Opener};
use crate::stages::Stopwatch;
use crate::transmit::{Outbox, Path, Shape};
use crate::{HostConfig, HostError};

/// Connections, timers, listeners.
#[derive(Debug)]
pub(crate) struct Core<B> {
    pub(super) post: Arc<Post<B>>,
    commands: Receiver<Command<B>>,
    pub(super) demux: Demux,
    pub(super) slots: Slots<B>,
    pub(super) timers: Timers,
    /// Places of the cells that something happened to.
    pub(super) dirty: Vec<u32>,
    pub(super) listeners: Vec<Arc<Listening<B>>>,
    pub(super) link: Link,
    pub(super) paths: Paths,
    /// Places of the cells that wait for a neighbour.
    pub(super) unresolved: Vec<u32>,
    /// Resets to strangers, of whom there may be many.
    pub(super) may_reset: Allowance,
    pub(super) kept: Kept,
    pub(super) outbox: Outbox,
    pub(super) shape: Shape,
    pub(super) counters: HostCounters,
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Core<B> {
    pub(super) fn new(
        config: &HostConfig,
        settings: Settings,
        sink: SinkCapabilities,
        kept: Kept,
    ) -> Result<Self, HostError> {
        let mut link = settings.link.clone();
        link.announce();
        let (post, commands) = Post::new(config, settings)?;
        let shape = Shape::new(sink, link.mac(), config.ack_templates);
        Ok(Self {
            link,
            kept,
            paths: Paths::default(),
            unresolved: Vec::new(),
            may_reset: Allowance::new(RESETS_AT_ONCE, RESETS_EACH_SECOND),
            post,
            commands,
            demux: Demux::new(config.secret[0]),
            slots: Slots::new(),
            timers: Timers::default(),
            dirty: Vec::new(),
            listeners: Vec::new(),
            outbox: Outbox::new(shape, Stopwatch::new(config.stage_timer)),
            shape,
            counters: HostCounters::default(),
        })
    }

    pub(super) fn opener(&self) -> Arc<dyn Opener> {
        Arc::clone(&self.post) as Arc<dyn Opener>
    }

    pub(super) fn post(&self) -> &Post<B> {
        &self.post
    }

    pub(super) fn packets_sent(&self) -> u64 {
        self.outbox.sent
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        self.timers.next().into_iter().chain(self.link.poll_at()).min()
    }

    pub(super) fn counters(&self) -> HostCounters {
        HostCounters {
            link: self.link.counters(),
            connections: self.slots.len(),
            timers: self.timers.len(),
            stages: self.outbox.watch.times(),
            refused_sends: self.outbox.refused(),
            ..self.counters.clone()
        }
    }

    /// Does what applications asked for; says how much that was.
    pub(super) fn obey(&mut self) -> usize {
        let mut obeyed = 0;
        while let Ok(command) = self.commands.try_recv() {
            obeyed += 1;
            match command {
                Command::Serve(cell) => {
                    cell.unmark();
                    self.touch_cell(&cell);
                }
                Command::Open(cell) => {
                    self.settle(cell, None);
                }
                Command::Listen(listening) => self.listeners.push(listening),
                Command::Unlisten(listening) => self.unlisten(&listening),
            }
        }
        obeyed
    }

    /// The cells that may be due are to be served; the link does what is due.
    pub(super) fn wake_due(&mut self, now: Instant) {
        if self.link.poll_at().is_some_and(|at| at <= now) {
            self.link.on_timeout(now);
            // Who waits for a neighbour that does not answer asks again.
            self.touch_unresolved();
        }
        while let Some(place) = self.timers.take_due(now) {
            self.touch(place);
        }
    }

    /// The cell at `place` is to be served in this turn.
    pub(super) fn touch(&mut self, place: u32) {
        if let Some(slot) = self.slots.get_mut(place).filter(|slot| !slot.is_dirty) {
            slot.is_dirty = true;
            self.dirty.push(place);
        }
    }

    /// The same, if it is still there.
    fn touch_cell(&mut self, cell: &Arc<Cell<B>>) {
        let place = cell.place.load(Ordering::Relaxed);
        if self.slots.get(place).is_some_and(|slot| Arc::ptr_eq(&slot.cell, cell)) {
            self.touch(place);
        }
    }

    /// Gives `cell` a place.
    pub(super) fn settle(
        &mut self,
        cell: Arc<Cell<B>>,
        listener: Option<Arc<Listening<B>>>,
    ) -> u32 {
        let key = cell.pair.reversed();
        let path = Path::new(cell.pair, &self.shape);
        let has_port = listener.is_none();
        let slot = Slot {
            cell: Arc::clone(&cell),
            path,
            resolved_until: None,
            is_heard: false,
            ids: 0,
            is_unresolved: false,
            is_dirty: false,
            kept: None,
            owned_until: SeqNumber::default(),
            listener,
            has_port,
        };
        let place = self.slots.insert(slot);
        cell.place.store(place, Ordering::Relaxed);
        self.demux.insert(&key, place);
        self.touch(place);
        place
    }

    /// Forgets the connection at `place`.
    pub(super) fn forget(&mut self, place: u32) {
        let Some(slot) = self.slots.remove(place) else { return };
        slot.cell.place.store(u32::MAX, Ordering::Relaxed);
        self.demux.remove(&slot.cell.pair.reversed());
        self.timers.set(place, None);
        if let Some(listener) = &slot.listener {
            listener.one_opens_no_more();
        }
        if slot.has_port {
            self.post.ports().give_back(slot.cell.pair.source_port());
        }
        self.post.give_back_socket();
    }

    /// Who listens for packets to the destination of `key`.
    pub(super) fn listener(&self, key: &FlowKey) -> Option<Arc<Listening<B>>> {
        let (address, port) = (key.destination(), key.destination_port());
        let is_it = |listening: &&Arc<Listening<B>>| {
            listening.address.port() == port && covers(listening.address.ip(), address)
        };
        self.listeners.iter().find(is_it).cloned()
    }

    /// Resets every connection.
    pub(super) fn abort_all(&mut self) {
        for listening in std::mem::take(&mut self.listeners) {
            self.unlisten(&listening);
            listening.signal.tell();
        }
        let cells: Vec<_> = self.slots.iter().map(|(_, slot)| Arc::clone(&slot.cell)).collect();
        for cell in cells {
            // The worker works no more, so now it may wait.
            cell.with(|inner| inner.connection.abort());
            cell.signal.tell();
            self.touch_cell(&cell);
        }
    }

    fn unlisten(&mut self, listening: &Arc<Listening<B>>) {
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
            cell.serve(|inner| inner.connection.abort());
            self.touch_cell(&cell);
        }
    }
}

/// Whether a connection is over, or never was one.
pub(super) const fn is_over(state: State) -> bool {
    matches!(state, State::Closed(_) | State::Listen)
}

/// A client that tries a range of ports is told; a flood from names that do not exist is not
/// reflected (RFC 5961, section 10, asks for such a limit).
const RESETS_AT_ONCE: u32 = 256;
const RESETS_EACH_SECOND: u32 = 1_000;
