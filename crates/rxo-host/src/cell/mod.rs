//! The cell: a connection and its lock, shared by the worker and the application's threads.
//!
//! The worker never waits for the lock. What arrives while an application holds it goes to the
//! cell's backlog, and is run by whoever unlocks; once something is in the backlog, what follows goes
//! there too, because everybody who gets the lock runs the backlog first. So the order holds. This is
//! the shape of Linux's socket lock, and of Chan et al. 2013.
//!
//! Nothing is left lying: the worker pushes, then tries the lock again; who unlocks looks at the
//! backlog afterwards. Both sides put a full fence between the two, so at least one of them sees the
//! other.
//!
//! The application never touches the device: it marks the cell, and the worker serves it.

mod backlog;
mod calls;
mod signal;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use rxo_frame::{Frame, Instant};
use rxo_tcp::{Arrival, Connection, Events, Segment};
use rxo_wire::FlowKey;
use rxo_wire::tcp::AckRecord;

use self::backlog::{Arrivals, Backlog};
pub(crate) use self::calls::{Bound, Socket, local, peer};
pub(crate) use self::signal::{Descriptor, Signal};
use crate::buffer::Buffer;
use crate::memory::Share;
use crate::post::{Command, Post};
use crate::transmit::Marks;

/// A connection and everything around it.
#[derive(Debug)]
pub(crate) struct Cell<B> {
    /// The direction in which this side sends.
    pub(crate) pair: FlowKey,
    /// Where it stands at the worker; the worker alone writes it.
    pub(crate) place: AtomicU32,
    inner: Mutex<Inner<B>>,
    backlog: Backlog<B>,
    /// The worker wanted to serve it and could not: who unlocks marks it.
    is_wanted: AtomicBool,
    /// It is in the worker's queue.
    is_marked: AtomicBool,
    /// No application has it any more.
    is_orphan: AtomicBool,
    pub(crate) signal: Signal,
    /// What its connection may hold of the host's memory; given back with the cell.
    share: Share,
    post: Arc<Post<B>>,
}

impl<B> Drop for Cell<B> {
    fn drop(&mut self) {
        self.post.memory().give_back(self.share);
    }
}

/// What the lock protects.
#[derive(Debug)]
pub(crate) struct Inner<B> {
    pub(crate) connection: Connection<Buffer<B>>,
    arrivals: Arrivals<B>,
    /// What of the IP header the application chose.
    pub(crate) marks: Marks,
    /// The application did something that the worker must act on.
    has_work: bool,
    /// The application reads no more.
    reads_no_more: bool,
    /// The failure was told by [`Socket::take_error`].
    is_error_taken: bool,
    /// The connection was told that no application has it any more.
    is_abandoned: bool,
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// The connection has it.
    Taken,
    /// It waits in the backlog.
    Waits,
    /// There was no room in the backlog: it is lost, as on a full link.
    Dropped,
}

impl<B: AsRef<[u8]>> Cell<B> {
    /// A cell for `connection`, for which `share` was reserved.
    pub(crate) fn new(
        connection: Connection<Buffer<B>>,
        share: Share,
        post: Arc<Post<B>>,
    ) -> Arc<Self> {
        let (backlog, arrivals) = Backlog::new();
        let inner = Inner {
            connection,
            arrivals,
            marks: Marks::default(),
            has_work: false,
            reads_no_more: false,
            is_error_taken: false,
            is_abandoned: false,
        };
        Arc::new(Self {
            pair: inner.connection.pair(),
            place: AtomicU32::new(u32::MAX),
            inner: Mutex::new(inner),
            backlog,
            is_wanted: AtomicBool::new(false),
            is_marked: AtomicBool::new(false),
            is_orphan: AtomicBool::new(false),
            signal: Signal::default(),
            share,
            post,
        })
    }

    /// The worker has something for it that arrived.
    pub(crate) fn on_arrival<F, A, S>(
        &self,
        now: Instant,
        arrival: Arrival<Buffer<B>, F, A, S>,
    ) -> Given
    where
        F: Iterator<Item = Frame<Buffer<B>>>,
        A: Iterator<Item = AckRecord>,
        S: Iterator<Item = Segment<Buffer<B>>>,
    {
        match self.try_lock() {
            Some(mut inner) => {
                self.run_backlog(&mut inner);
                inner.connection.on_arrival(now, arrival);
                Given::Taken
            }
            None => self.put_off(now, arrival),
        }
    }

    /// The worker wants to work on it. `None` when an application has it; then the cell comes to the
    /// worker's queue when it is unlocked.
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

    /// An application works on it.
    pub(crate) fn with<R>(self: &Arc<Self>, act: impl FnOnce(&mut Inner<B>) -> R) -> R {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.run_backlog_here(&mut inner);
        let result = act(&mut inner);
        self.leave(inner);
        result
    }

    /// The cell is taken from the worker's queue.
    pub(crate) fn unmark(&self) {
        self.is_marked.store(false, Ordering::SeqCst);
    }

    /// Tells the connection, once, when no application has it any more; says whether that is now.
    pub(crate) fn abandon_orphan(&self, inner: &mut Inner<B>, now: Instant) -> bool {
        let is_new = self.is_orphan.load(Ordering::Relaxed) && !inner.is_abandoned;
        if is_new {
            inner.is_abandoned = true;
            inner.connection.abandon(now);
        }
        is_new
    }

    /// Tells those who wait what has happened.
    pub(crate) fn tell(&self, inner: &Inner<B>, events: Events) {
        let is_worth_it = events.intersects(TOLD_AT_ONCE)
            || events.contains(Events::WRITABLE) && inner.connection.has_much_send_room();
        if is_worth_it {
            self.signal.tell();
        }
    }

    /// Unlocks, and runs what came meanwhile.
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
            if self.backlog.is_empty() {
                return;
            }
            // Whoever has it now runs the backlog.
            let Some(locked) = self.try_lock() else { return };
            inner = locked;
            self.run_backlog_here(&mut inner);
        }
    }

    /// Puts it into the worker's queue, once.
    pub(crate) fn mark(self: &Arc<Self>) {
        if !self.is_marked.swap(true, Ordering::SeqCst) {
            self.post.send(Command::Serve(Arc::clone(self)));
        }
    }

    fn put_off(&self, now: Instant, segments: impl Iterator<Item = Segment<Buffer<B>>>) -> Given {
        let has_room = self.backlog.push(now, segments);
        fence(Ordering::SeqCst);
        match self.try_lock() {
            Some(mut inner) => {
                self.run_backlog(&mut inner);
                if has_room { Given::Taken } else { Given::Dropped }
            }
            None if has_room => Given::Waits,
            None => Given::Dropped,
        }
    }

    fn run_backlog(&self, inner: &mut Inner<B>) {
        self.backlog.run(&mut inner.arrivals, &mut inner.connection);
    }

    /// Runs the backlog on an application's thread: the worker has to hear of it.
    fn run_backlog_here(&self, inner: &mut Inner<B>) {
        if self.backlog.run(&mut inner.arrivals, &mut inner.connection) {
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

/// What somebody may be waiting for. Room to send is not worth a wake-up for every acknowledgement.
const TOLD_AT_ONCE: Events =
    Events::CONNECTED.with(Events::READABLE).with(Events::PEER_DONE).with(Events::CLOSED);

#[cfg(test)]
mod tests;
