//! The worker without device and engine: connections, timers, the commands of applications.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use rxo_device::SinkCapabilities;
use rxo_frame::Instant;
use rxo_tcp::{State, TimeWait};
use rxo_wire::{FlowKey, SeqNumber};

use super::cast::Cast;
use super::counters::HostCounters;
use super::drain::Drain;
use super::kept::Kept;
use super::last_acks::LastAcks;
use super::line::{Line, Turn};
use super::memberships::Memberships;
use super::orphans::Orphans;
use super::paths::Paths;
use super::reclaim::Reclaim;
use super::rests::Rests;
use super::slots::{Slot, Slots};
use super::time_waits::TimeWaits;
use super::timers::Timers;
use crate::cell::Cell;
use crate::demux::Demux;
use crate::fast::{AckState, Fast};
use crate::link::{Allowance, Link};
use crate::ports::{PortChange, Ports};
use crate::post::{Command, Post, covers};
use crate::settings::Settings;
use crate::shards::{News, Seat};
use crate::socket::Listening;
use crate::stages::Stopwatch;
use crate::transmit::{Outbox, Path, Shape};
use crate::{HostConfig, HostError};

/// Connections, timers, listeners, and the link.
#[derive(Debug)]
pub(crate) struct Core<B> {
    pub(super) post: Arc<Post<B>>,
    /// The other shards of this host.
    pub(super) others: Vec<Arc<Post<B>>>,
    /// What they were told, to be heard in this turn.
    pub(super) news: Vec<News>,
    commands: Receiver<Command<B>>,
    pub(super) demux: Demux,
    pub(super) slots: Slots<B>,
    pub(super) time_waits: TimeWaits,
    pub(super) last_acks: LastAcks,
    /// Changes of pairs of sockets, to be applied while no thread chooses one.
    port_changes: Vec<PortChange>,
    pub(super) timers: Timers,
    pub(super) orphans: Orphans,
    pub(super) reclaim: Reclaim,
    pub(super) rests: Rests,
    /// The places of the cells to be served, in this turn or soon (`shares.rs`).
    pub(super) dirty: VecDeque<u32>,
    /// The room of the device's queue, and the cells that wait for it.
    pub(super) drain: Drain,
    pub(super) line: Line,
    pub(super) listeners: Vec<Arc<Listening<B>>>,
    pub(super) link: Link,
    pub(super) memberships: Memberships,
    pub(super) paths: Paths,
    /// The places of the cells that wait for a neighbour.
    pub(super) unresolved: Vec<u32>,
    /// The rate limit of resets to strangers.
    pub(super) may_reset: Allowance,
    pub(super) kept: Kept,
    pub(super) outbox: Outbox,
    pub(super) shape: Shape,
    pub(super) fast: Fast,
    pub(super) cast: Option<Box<Cast<B>>>,
    /// When the last turn began.
    pub(super) now: Instant,
    pub(super) counters: HostCounters,
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    pub(super) fn new(
        config: &HostConfig,
        settings: Settings,
        sink: SinkCapabilities,
        kept: Kept,
        seat: Seat,
    ) -> Result<Self, HostError> {
        let mut link = settings.link.clone();
        match config.probe {
            Some(probe) => link.probe(probe, seat.shard.is_first()),
            None if seat.shard.is_first() => link.announce(),
            None => {}
        }
        let (post, commands) = Post::new(config, settings, seat)?;
        let shape = Shape::new(sink, link.mac(), config.ack_templates);
        let fast = Fast::new(&config.fast_path, sink.link, link.mac(), post.fast.clone());
        Ok(Self {
            link,
            memberships: Memberships::default(),
            kept,
            paths: Paths::default(),
            unresolved: Vec::new(),
            may_reset: Allowance::new(RESETS_AT_ONCE, RESETS_EACH_SECOND),
            post,
            others: Vec::new(),
            news: Vec::new(),
            commands,
            demux: Demux::new(config.secret[0]),
            slots: Slots::new(),
            time_waits: TimeWaits::new(config.time_waits, config.secret[0]),
            last_acks: LastAcks::default(),
            port_changes: Vec::new(),
            timers: Timers::default(),
            orphans: Orphans::new(config.orphans),
            reclaim: Reclaim::default(),
            rests: Rests::default(),
            dirty: VecDeque::new(),
            drain: Drain::new(),
            line: Line::new(),
            listeners: Vec::new(),
            outbox: Outbox::new(shape, Stopwatch::new(config.stage_timer)),
            shape,
            fast,
            cast: None,
            now: Instant::ZERO,
            counters: HostCounters::default(),
        })
    }

    pub(super) fn post(&self) -> &Arc<Post<B>> {
        &self.post
    }

    /// Whether cells wait for the next turn.
    pub(super) fn has_more_to_serve(&self) -> bool {
        !self.dirty.is_empty()
    }

    pub(super) fn packets_sent(&self) -> u64 {
        self.outbox.sent
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        if self.has_more_to_serve() {
            return Some(Instant::ZERO);
        }
        let deadlines = [
            self.line_at(),
            self.timers.next(),
            self.link.poll_at(),
            self.time_waits.next_at(),
            self.rests.next_at(self.post.memory()),
            self.cast.as_ref().and_then(|cast| cast.poll_at()),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// When the first cell in the line may be served; `None` if there is none.
    fn line_at(&self) -> Option<Instant> {
        (!self.line.is_empty()).then(|| self.drain.read_at().unwrap_or(self.now))
    }

    pub(super) fn counters(&self) -> HostCounters {
        HostCounters {
            stalls: self.drain.stalls,
            waiting_for_device: self.line.len(),
            link: self.link.counters(),
            conflict: self.link.conflict(),
            connections: self.slots.len(),
            time_waits: self.time_waits.len(),
            orphans: self.orphans.len(),
            memory_left_bytes: self.post.memory().left(),
            texts_without_memory: self.post.memory().refused(),
            last_acks_left: self.last_acks.left(self.now),
            timers: self.timers.len(),
            stages: self.outbox.watch.times(),
            refused_sends: self.outbox.refused(),
            fast: self.fast.counters(),
            ..self.counters.clone()
        }
    }

    /// Carries out the commands of applications. Returns how many there were.
    pub(super) fn obey(&mut self) -> usize {
        let mut obeyed = 0;
        while let Ok(command) = self.commands.try_recv() {
            obeyed += 1;
            match command {
                Command::Serve(cell) => {
                    cell.unmark();
                    self.touch_cell(&cell);
                }
                Command::Open(cell) => self.open(cell),
                Command::Listen(listening) => self.listeners.push(listening),
                Command::Unlisten(listening) => self.unlisten(&listening),
                Command::Hear(news) => self.news.push(news),
                Command::Turn => {}
                Command::Cast(command) => self.obey_cast(*command),
            }
        }
        obeyed
    }

    /// Marks the cells that may be due as to be served; the link does what is due.
    pub(super) fn wake_due(&mut self, now: Instant) {
        self.join_groups(now);
        if self.link.poll_at().is_some_and(|at| at <= now) {
            self.link.on_timeout(now);
            // Cells that wait for a neighbour which does not answer try again.
            self.touch_unresolved();
        }
        while let Some(place) = self.timers.take_due(now) {
            self.touch(place);
        }
        if self.time_waits.next_at().is_some_and(|at| at <= now) {
            while let Some(key) = self.time_waits.take_due(now) {
                self.free_port(&key.reversed());
            }
        }
        self.wake_cast(now);
        self.change_ports();
    }

    /// Opens a connection for an application. If a peer has just opened one between the same sockets, which is
    /// unlikely, the new one is aborted.
    fn open(&mut self, cell: Arc<Cell<B>>) {
        let key = cell.pair.reversed();
        if self.demux.find(&key).is_none() && self.time_waits.get_mut(&key).is_none() {
            let is_member = cell.group.is_some();
            let place = self.add_cell(cell, None);
            if is_member {
                self.memberships.expect(place);
            }
            return;
        }
        // Dropped without the lock: a reader may own streams.
        let _reader = cell.serve(|inner| {
            inner.connection.abort();
            inner.reader.take()
        });
        cell.signal.notify();
        self.post.give_back_socket();
    }

    /// Marks the cell at `place` as to be served.
    pub(super) fn touch(&mut self, place: u32) {
        if let Some(slot) = self.slots.get_mut(place) {
            slot.touch(place, &mut self.dirty);
        }
    }

    /// Marks `cell` as to be served, if it still has a place.
    fn touch_cell(&mut self, cell: &Arc<Cell<B>>) {
        let place = cell.place.load(Ordering::Relaxed);
        if self.slots.get(place).is_some_and(|slot| Arc::ptr_eq(&slot.cell, cell)) {
            self.touch(place);
        }
    }

    /// Adds `cell` and returns its place.
    pub(super) fn add_cell(
        &mut self,
        cell: Arc<Cell<B>>,
        listener: Option<Arc<Listening<B>>>,
    ) -> u32 {
        let key = cell.pair.reversed();
        let path = Path::new(cell.pair, &self.shape);
        let is_active = listener.is_none();
        if !is_active && Ports::counts(cell.pair.source_port()) {
            self.port_changes.push(PortChange::Taken(cell.pair));
        }
        let slot = Slot {
            cell: Arc::clone(&cell),
            path,
            resolved_until: None,
            is_heard: false,
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
            acks: AckState::new(self.link.may_arrive(&key)),
        };
        let place = self.slots.insert(slot);
        cell.place.store(place, Ordering::Relaxed);
        self.demux.insert(&key, place);
        self.touch(place);
        place
    }

    /// Removes the connection at `place`. `left` is what TIME-WAIT needs of it, if anything.
    pub(super) fn forget(&mut self, place: u32, left: Option<(TimeWait, Instant)>) {
        let Some(slot) = self.slots.remove(place) else { return };
        slot.cell.place.store(u32::MAX, Ordering::Relaxed);
        let (pair, key) = (slot.cell.pair, slot.cell.pair.reversed());
        self.demux.remove(&key);
        self.timers.set(place, None);
        if let Some(listener) = &slot.listener {
            listener.one_opens_no_more();
        }
        if slot.orphan.is_some() {
            self.orphans.remove();
        }
        self.post.give_back_socket();
        match left {
            None => self.free_port(&pair),
            Some((left, until)) => {
                let given_up = self.time_waits.insert(key, left, until);
                self.note_given_up(given_up);
            }
        }
    }

    /// Restarts the time of a connection in TIME-WAIT.
    pub(super) fn restart_time_wait(&mut self, key: &FlowKey, until: Instant) {
        let given_up = self.time_waits.restart(key, until);
        self.note_given_up(given_up);
    }

    fn note_given_up(&mut self, given_up: Option<FlowKey>) {
        if let Some(key) = given_up {
            self.counters.time_waits_given_up += 1;
            self.free_port(&key.reversed());
        }
    }

    /// Removes a connection in TIME-WAIT.
    pub(super) fn forget_time_wait(&mut self, key: &FlowKey) {
        self.time_waits.remove(key);
        self.free_port(&key.reversed());
    }

    fn free_port(&mut self, pair: &FlowKey) {
        if Ports::counts(pair.source_port()) {
            self.port_changes.push(PortChange::Free(*pair));
        }
    }

    fn change_ports(&mut self) {
        if !self.port_changes.is_empty() {
            self.post.ports().change(&mut self.port_changes);
        }
    }

    /// The listener for packets to the destination of `key`.
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
            listening.signal.notify();
        }
        let cells: Vec<_> = self.slots.iter().map(|(_, slot)| Arc::clone(&slot.cell)).collect();
        for cell in cells {
            // The worker has ended, so it may wait.
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
            // Waits as above: a reset that was left out would never come.
            cell.with(|inner| inner.connection.abort());
            self.touch_cell(&cell);
        }
    }
}

/// Whether a connection is closed, or was never opened.
pub(super) const fn is_over(state: State) -> bool {
    matches!(state, State::Closed(_) | State::Listen)
}

/// A client that tries a range of ports gets its resets; a flood from forged addresses is not reflected (RFC
/// 5961, section 10, asks for such a limit).
const RESETS_AT_ONCE: u32 = 256;
const RESETS_EACH_SECOND: u32 = 1_000;
