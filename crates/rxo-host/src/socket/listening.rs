//! A listener: a queue of connections from the worker to the application.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use rxo_frame::Instant;

use crate::cast::{CastAct, CastCommand, CastPost};
use crate::cell::{Bound, Cell, Signal, Socket};
use crate::post::{Command, Place, Post};

/// The connections of a local address that wait for `accept`, on one shard.
#[derive(Debug)]
pub(crate) struct Listening<B> {
    pub(crate) address: SocketAddr,
    /// Maximum number of connections that are half-open or wait to be accepted.
    pub(crate) backlog: usize,
    /// Number of half-open connections. Only the worker changes this number.
    opening: AtomicUsize,
    /// The time until which a returned SYN cookie is valid, in nanoseconds of the worker's clock. Only the
    /// worker writes it.
    cookies_until: AtomicU64,
    ready: Sender<Arc<Cell<B>>>,
    accepted: Mutex<Receiver<Arc<Cell<B>>>>,
    /// Number of established connections that wait to be accepted.
    waiting: AtomicUsize,
    /// The signal of the listener, shared by its parts on all shards.
    pub(crate) signal: Arc<Signal>,
}

/// The application's side of a listener. No call blocks.
pub(crate) trait Accept: Send + Sync {
    fn accept(&self) -> io::Result<Arc<dyn Socket>>;
    fn signal(&self) -> &Signal;
    fn address(&self) -> SocketAddr;
}

impl<B> Listening<B> {
    pub(crate) fn new(address: SocketAddr, backlog: usize, signal: Arc<Signal>) -> Arc<Self> {
        let (ready, accepted) = channel();
        Arc::new(Self {
            address,
            backlog: backlog.max(1),
            opening: AtomicUsize::new(0),
            cookies_until: AtomicU64::new(0),
            ready,
            accepted: Mutex::new(accepted),
            waiting: AtomicUsize::new(0),
            signal,
        })
    }

    /// Returns `true` if the backlog has space for another half-open connection.
    pub(crate) fn has_room(&self) -> bool {
        self.opening.load(Ordering::Relaxed) + self.waiting.load(Ordering::Relaxed) < self.backlog
    }

    /// Returns `true` if the backlog has space for another established connection.
    pub(crate) fn accepts(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < self.backlog
    }

    /// Counts a new half-open connection.
    pub(crate) fn one_opens(&self) {
        self.opening.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a half-open connection, which was established or has failed.
    pub(crate) fn one_opens_no_more(&self) {
        self.opening.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records that SYNs were answered with cookies, which may be returned until `until`.
    pub(crate) fn expect_cookies(&self, until: Instant) {
        self.cookies_until.store(until.as_nanos(), Ordering::Relaxed);
    }

    /// Returns `true` if SYN cookies are accepted at `now`. Cookies are accepted only for a while after one was
    /// sent, so that an attacker cannot guess cookies at other times.
    pub(crate) fn expects_cookies(&self, now: Instant) -> bool {
        now.as_nanos() < self.cookies_until.load(Ordering::Relaxed)
    }

    /// Appends an established connection and notifies the application.
    pub(crate) fn push(&self, cell: Arc<Cell<B>>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Sending cannot fail: the receiver lives as long as `self`.
        let _sent = self.ready.send(cell);
        self.signal.notify();
    }

    /// Removes and returns the connection that has waited longest; `None` if no connection waits.
    pub(crate) fn pop(&self) -> Option<Arc<Cell<B>>> {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = accepted.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(cell)
    }
}

/// The application's handle to a listener. Dropping this handle closes the listener.
pub(crate) struct BoundListener<B> {
    place: Place,
    parts: Vec<Part<B>>,
    signal: Arc<Signal>,
    /// Number of calls of `accept` so far, which determines the shard that a call checks first.
    calls: AtomicUsize,
}

/// The part of a listener that belongs to one shard.
pub(crate) struct Part<B> {
    pub(crate) listening: Arc<Listening<B>>,
    pub(crate) post: Arc<Post<B>>,
}

impl<B: Send + Sync + 'static> CastPost for Part<B> {
    fn apply(&self, act: CastAct) {
        self.post.send_cast(CastCommand::Act(Arc::clone(&self.listening), act));
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> BoundListener<B> {
    pub(crate) fn bind(place: Place, parts: Vec<Part<B>>, signal: Arc<Signal>) -> Arc<dyn Accept> {
        Arc::new(Self { place, parts, signal, calls: AtomicUsize::new(0) })
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Accept for BoundListener<B> {
    fn accept(&self) -> io::Result<Arc<dyn Socket>> {
        let first = self.calls.fetch_add(1, Ordering::Relaxed) % self.parts.len().max(1);
        let (before, from) = self.parts.split_at(first);
        let mut parts = from.iter().chain(before);
        match parts.find_map(|part| part.listening.pop()) {
            Some(cell) => Ok(Bound::bind(cell)),
            None if self.parts.iter().all(|part| part.post.is_closed()) => Err(worker_ended()),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }

    fn address(&self) -> SocketAddr {
        self.place.address
    }
}

impl<B> Drop for BoundListener<B> {
    fn drop(&mut self) {
        if let Some(first) = self.parts.first() {
            first.post.listeners.release(self.place);
        }
        for Part { listening, post } in &self.parts {
            post.send(Command::Unlisten(Arc::clone(listening)));
        }
    }
}

/// Returns the error of a call on a host whose worker has ended.
pub(crate) fn worker_ended() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the host has been stopped; start another")
}
