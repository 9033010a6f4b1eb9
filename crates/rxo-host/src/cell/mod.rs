//! The cell: a connection and its lock, shared by the worker and the application's threads.
//!
//! The worker never waits for the lock. Segments that arrive while an application holds the lock are put into
//! the backlog. The application's thread processes the backlog when it unlocks the cell. Every thread that
//! acquires the lock processes the backlog first, so segments stay in order. Linux's socket lock works in the
//! same way.
//!
//! Pure ACKs of the fast path are put into a ring instead (Chan and Cheriton 2013, section 3.2), which needs no
//! allocation. ACKs in the ring are older than segments in the backlog: the worker fills the ring only while
//! the backlog is empty, and the thread that processes both empties the ring before each step of the backlog.
//!
//! No segment is left in the backlog. The worker pushes a segment, then tries the lock again; the thread that
//! unlocks checks the backlog afterwards. Both threads execute a full fence in between, so at least one of them
//! sees the write of the other. `tests/ring` has a model of this protocol for `loom`, which must be changed
//! together with the protocol.
//!
//! The application never uses the device. It puts the cell into the worker's queue, and the worker serves the
//! cell.

mod ack_ring;
mod acks;
mod backlog;
mod calls;
mod group;
mod memory;
mod pending_changes;
mod reader;
mod ready_set;
mod signal;
#[cfg(feature = "tokio")]
mod tasks;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use rxo_frame::{Frames, Instant};
use rxo_tcp::{Arrival, Connection, Events, Segment};
use rxo_wire::FlowKey;
use rxo_wire::tcp::AckRecord;

use self::ack_ring::AckRing;
pub(crate) use self::ack_ring::AckTerms;
pub(crate) use self::acks::WaitingAcks;
use self::backlog::Backlog;
pub(crate) use self::calls::{Bound, Socket};
pub(crate) use self::group::GroupFlow;
use self::memory::admission;
use self::pending_changes::PendingChanges;
pub(crate) use self::reader::{Reader, deadlock, is_reading};
pub(crate) use self::ready_set::ReadySet;
pub(crate) use self::signal::{Descriptor, Signal, time_left};
#[cfg(feature = "tokio")]
pub(crate) use self::tasks::{TaskEvent, Tasks};
use crate::buffer::Buffer;
use crate::memory::Share;
use crate::post::{Command, Post};
use crate::transmit::Marks;

/// A connection with its lock, backlog and wake-up state.
#[derive(Debug)]
pub(crate) struct Cell<B> {
    /// The flow key of the direction in which this host sends.
    pub(crate) pair: FlowKey,
    /// The multicast group to which the peer also sends; `None` if the connection does not belong to a group.
    pub(crate) group: Option<Box<GroupFlow>>,
    /// The index of the cell in the worker's table. Only the worker writes it.
    pub(crate) place: AtomicU32,
    inner: Mutex<Inner<B>>,
    ring: AckRing,
    backlog: Backlog<B>,
    /// `true` after the worker has found the cell locked. The thread that unlocks the cell then puts it into
    /// the worker's queue.
    is_wanted: AtomicBool,
    /// `true` while the cell is in the worker's queue.
    is_marked: AtomicBool,
    /// `true` once the application has dropped its handle.
    is_orphan: AtomicBool,
    pub(crate) signal: Signal,
    post: Arc<Post<B>>,
}

impl<B> Drop for Cell<B> {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.post.memory().release(inner.share);
    }
}

/// The part of a cell that its lock protects.
#[derive(Debug)]
pub(crate) struct Inner<B> {
    pub(crate) connection: Connection<Buffer<B>>,
    /// The memory reserved for the connection; released when the cell is dropped.
    share: Share,
    /// The fields of the IP header that the application set.
    pub(crate) marks: Marks,
    /// The settings that the application has changed and that the worker has not applied yet; `None` if there
    /// are none.
    pending_changes: Option<Box<PendingChanges>>,
    /// `true` if the worker must serve the cell after a call of the application.
    has_work: bool,
    /// `true` while the application waits for memory to send.
    lacks_memory: bool,
    /// The function that receives all readable data; `None` if the application has set none.
    pub(crate) reader: Option<Reader>,
    /// `true` once the application has shut down reading.
    reads_no_more: bool,
    /// `true` once [`Socket::take_error`] has returned the failure.
    is_error_taken: bool,
    /// `true` once the connection has been abandoned because the application has dropped its handle.
    is_abandoned: bool,
}

/// The outcome of passing received segments to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrivalOutcome {
    /// The connection has processed the segments.
    Taken,
    /// The segments wait in the backlog.
    Waits,
    /// At least one segment was dropped, because the backlog is full.
    Dropped,
}

impl<B: AsRef<[u8]>> Cell<B> {
    /// Creates a cell for `connection` with its reserved memory `share`.
    pub(crate) fn new(
        connection: Connection<Buffer<B>>,
        share: Share,
        post: Arc<Post<B>>,
    ) -> Arc<Self> {
        Self::in_group(connection, share, post, None)
    }

    /// Creates a cell as [`Cell::new`] does, for a connection that may belong to the multicast group `group`.
    pub(crate) fn in_group(
        connection: Connection<Buffer<B>>,
        share: Share,
        post: Arc<Post<B>>,
        group: Option<GroupFlow>,
    ) -> Arc<Self> {
        let inner = Inner {
            connection,
            share,
            marks: Marks::default(),
            pending_changes: None,
            has_work: false,
            lacks_memory: false,
            reader: None,
            reads_no_more: false,
            is_error_taken: false,
            is_abandoned: false,
        };
        Arc::new(Self {
            pair: inner.connection.pair(),
            group: group.map(Box::new),
            place: AtomicU32::new(u32::MAX),
            inner: Mutex::new(inner),
            ring: AckRing::new(),
            backlog: Backlog::new(),
            is_wanted: AtomicBool::new(false),
            is_marked: AtomicBool::new(false),
            is_orphan: AtomicBool::new(false),
            signal: Signal::default(),
            post,
        })
    }

    /// Passes `arrival` to the connection, or to the backlog if an application holds the lock.
    pub(crate) fn on_arrival<F, A, S>(
        &self,
        now: Instant,
        arrival: Arrival<Buffer<B>, F, A, S>,
    ) -> ArrivalOutcome
    where
        F: Frames<Buffer<B>>,
        A: Iterator<Item = AckRecord>,
        S: Iterator<Item = Segment<Buffer<B>>>,
    {
        match self.try_lock() {
            Some(mut inner) => {
                self.run_backlog(&mut inner);
                match inner.share.receives() {
                    true => inner.connection.on_arrival(now, arrival),
                    false => self.on_first_arrival(&mut inner, now, arrival),
                }
                // The data is passed on at once: the cell may be served some rounds later, and until then the
                // data would occupy the device's buffers.
                Self::read_out(&mut inner);
                ArrivalOutcome::Taken
            }
            None => self.defer(now, arrival, false),
        }
    }

    /// Passes `arrival` to a connection without memory for received data. Reserves memory if the segments
    /// carry data; drops the data if there is not enough.
    fn on_first_arrival<F, A, S>(
        &self,
        inner: &mut Inner<B>,
        now: Instant,
        arrival: Arrival<Buffer<B>, F, A, S>,
    ) where
        F: Frames<Buffer<B>>,
        A: Iterator<Item = AckRecord>,
        S: Iterator<Item = Segment<Buffer<B>>>,
    {
        let is_admitted = match arrival {
            Arrival::Run(_) | Arrival::Gso(_) => {
                self.post.memory().wake_receiving(&mut inner.share)
            }
            Arrival::Acks(_) => true,
            Arrival::Segments(_) => false,
        };
        if is_admitted {
            return inner.connection.on_arrival(now, arrival);
        }
        let Inner { connection, share, .. } = inner;
        let admits = admission(self.post.memory(), share, connection);
        connection.on_arrival(now, Arrival::segments(arrival.filter(admits)));
    }

    /// Passes segments that the peer has sent to a multicast group to the connection, like
    /// [`Cell::on_arrival`].
    pub(crate) fn on_group_arrival<F, A, S>(
        &self,
        now: Instant,
        arrival: Arrival<Buffer<B>, F, A, S>,
    ) -> ArrivalOutcome
    where
        F: Frames<Buffer<B>>,
        A: Iterator<Item = AckRecord>,
        S: Iterator<Item = Segment<Buffer<B>>>,
    {
        match self.try_lock() {
            Some(mut inner) => {
                self.run_backlog(&mut inner);
                let Inner { connection, share, .. } = &mut *inner;
                match share.receives() {
                    true => connection.on_group_arrival(now, arrival),
                    false => {
                        let admits = admission(self.post.memory(), share, connection);
                        let arrival = Arrival::segments(arrival.filter(admits));
                        connection.on_group_arrival(now, arrival);
                    }
                }
                Self::read_out(&mut inner);
                ArrivalOutcome::Taken
            }
            None => self.defer(now, arrival, true),
        }
    }

    /// Runs `act` on the connection for the worker. `None` if an application holds the lock; the thread that
    /// unlocks the cell then queues it for the worker.
    pub(crate) fn serve<R>(&self, act: impl FnOnce(&mut Inner<B>) -> R) -> Option<R> {
        let mut inner = self.try_lock().or_else(|| {
            self.is_wanted.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            self.try_lock()
        })?;
        self.is_wanted.store(false, Ordering::SeqCst);
        self.run_backlog(&mut inner);
        Some(act(&mut inner))
    }

    /// Runs `act` on the connection before segments are passed to it. Blocks the worker until it has acquired
    /// the lock, because a skipped action would not be repeated. Only allowed for connections without an
    /// application's handle: the lock of such a cell is held only briefly, by threads that list connections.
    #[inline]
    pub(crate) fn prepare(self: &Arc<Self>, act: impl FnOnce(&mut Connection<Buffer<B>>)) {
        match self.try_lock() {
            Some(mut inner) => act(&mut inner.connection),
            None => self.with(|inner| act(&mut inner.connection)),
        }
    }

    /// Runs `act` on the connection like [`Cell::with`], for calls that return errors. Called from inside an
    /// application's reader, fails with `Deadlock` instead of a panic.
    fn call<R>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Inner<B>) -> io::Result<R>,
    ) -> io::Result<R> {
        if is_reading() { Err(deadlock()) } else { self.with(act) }
    }

    /// Runs `act` on the connection for an application's thread. Blocks until the thread acquires the lock.
    ///
    /// # Panics
    /// If called from inside an application's reader.
    pub(crate) fn with<R>(self: &Arc<Self>, act: impl FnOnce(&mut Inner<B>) -> R) -> R {
        assert!(!is_reading(), "{}", reader::NO_CALLS);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.run_backlog_here(&mut inner);
        let result = act(&mut inner);
        self.leave(inner);
        result
    }

    /// Returns `true` if the application has dropped its handle.
    pub(crate) fn is_orphan(&self) -> bool {
        self.is_orphan.load(Ordering::Relaxed)
    }

    /// Records that the cell was taken from the worker's queue.
    pub(crate) fn unmark(&self) {
        self.is_marked.store(false, Ordering::SeqCst);
    }

    /// Applies the settings that the application changed. Once the application has dropped its handle, abandons
    /// the connection and returns `true`; later calls return `false`.
    pub(crate) fn follow_application(&self, inner: &mut Inner<B>, now: Instant) -> bool {
        inner.apply_pending_changes(now);
        let is_new = self.is_orphan.load(Ordering::Relaxed) && !inner.is_abandoned;
        if is_new {
            inner.is_abandoned = true;
            inner.connection.abandon(now);
        }
        is_new
    }

    /// Passes all readable data to the application's reader, if there is one.
    #[inline]
    pub(crate) fn read_out(inner: &mut Inner<B>) {
        if let Some(reader) = inner.reader.as_mut().filter(|_| !inner.reads_no_more) {
            reader.read_all(&mut inner.connection);
        }
    }

    /// Wakes waiting threads if `events` contains an event that they wait for.
    pub(crate) fn wake_waiting(&self, inner: &Inner<B>, events: Events) {
        let reported = if inner.reader.is_some() { REPORTED_WITH_READER } else { REPORTED_AT_ONCE };
        let is_worth_it = events.intersects(reported)
            || events.contains(Events::WRITABLE) && inner.connection.has_much_send_room();
        if is_worth_it {
            self.signal.notify();
        }
    }

    /// Unlocks the cell, then processes the backlog if it was filled meanwhile.
    fn leave<'a>(self: &'a Arc<Self>, mut inner: MutexGuard<'a, Inner<B>>) {
        loop {
            let has_work = std::mem::take(&mut inner.has_work);
            drop(inner);
            if has_work {
                self.mark();
            }
            fence(Ordering::SeqCst);
            if self.is_wanted.load(Ordering::SeqCst) && self.is_wanted.swap(false, Ordering::SeqCst)
            {
                self.mark();
            }
            if self.has_no_backlog() {
                return;
            }
            // If another thread has taken the lock, that thread runs the backlog.
            let Some(locked) = self.try_lock() else { return };
            inner = locked;
            self.run_backlog_here(&mut inner);
        }
    }

    /// Puts the cell into the worker's queue, unless it is in the queue already.
    pub(crate) fn mark(self: &Arc<Self>) {
        if !self.is_marked.swap(true, Ordering::SeqCst) {
            self.post.send(Command::Serve(Arc::clone(self)));
        }
    }

    fn defer(
        &self,
        now: Instant,
        segments: impl Iterator<Item = Segment<Buffer<B>>>,
        is_to_group: bool,
    ) -> ArrivalOutcome {
        let has_room = self.backlog.push(now, segments, is_to_group);
        fence(Ordering::SeqCst);
        match self.try_lock() {
            Some(mut inner) => {
                self.run_backlog(&mut inner);
                if has_room { ArrivalOutcome::Taken } else { ArrivalOutcome::Dropped }
            }
            None if has_room => ArrivalOutcome::Waits,
            None => ArrivalOutcome::Dropped,
        }
    }

    /// Passes the ACKs in the ring and the segments in the backlog to the connection. Returns `true` if at
    /// least one was passed.
    #[inline]
    fn run_backlog(&self, inner: &mut Inner<B>) -> bool {
        !self.has_no_backlog() && self.run_put_off(inner)
    }

    /// Passes the ACKs in the ring and the segments in the backlog to the connection. Not inlined, because the
    /// ring and the backlog are usually empty.
    #[inline(never)]
    fn run_put_off(&self, inner: &mut Inner<B>) -> bool {
        let Inner { connection, share, .. } = inner;
        let mut has_run = self.run_ring(connection);
        while let Some(first) = self.backlog.next() {
            // ACKs may have come before this segment, after the ring was emptied.
            self.run_ring(connection);
            let admits = admission(self.post.memory(), share, connection);
            self.backlog.run(first, connection, admits);
            has_run = true;
        }
        has_run
    }

    /// Returns `true` if the ring and the backlog are empty.
    #[inline]
    fn has_no_backlog(&self) -> bool {
        self.ring.is_empty() && self.backlog.is_empty()
    }

    /// Processes the backlog on an application's thread. If the backlog was not empty, marks the cell as having
    /// work for the worker.
    fn run_backlog_here(&self, inner: &mut Inner<B>) {
        if self.run_backlog(inner) {
            inner.has_work = true;
        }
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Inner<B>>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The atomics of the ring; `tests/ring` replaces them with the atomics of `loom`.
mod atomics {
    pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

/// The events that always wake waiting threads. The event of free send space is excluded, because it would wake
/// the threads at every ACK.
const REPORTED_AT_ONCE: Events = REPORTED_WITH_READER.with(Events::READABLE);
/// The events that always wake waiting threads if the connection has a reader. `READABLE` is excluded, because
/// the reader has already consumed the data.
const REPORTED_WITH_READER: Events = Events::CONNECTED.with(Events::PEER_DONE).with(Events::CLOSED);

#[cfg(test)]
mod tests;
