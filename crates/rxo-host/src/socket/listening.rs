//! A listener, shared by the worker, which fills it, and the application, which empties it.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use rxo_frame::Instant;

use crate::cast::{CastAct, CastCommand, CastPost};
use crate::cell::{Bound, Cell, Signal, Socket};
use crate::post::{Command, Post};

/// The connections of a local address that wait for `accept`, of one shard.
#[derive(Debug)]
pub(crate) struct Listening<B> {
    pub(crate) address: SocketAddr,
    /// The most connections that are opening or wait.
    pub(crate) backlog: usize,
    /// How many connections are opening; only the worker writes it.
    opening: AtomicUsize,
    /// Until when cookies may be returned, in nanoseconds of the worker's clock; only the worker writes it.
    cookies_until: AtomicU64,
    ready: Sender<Arc<Cell<B>>>,
    accepted: Mutex<Receiver<Arc<Cell<B>>>>,
    /// How many connections are open and wait.
    waiting: AtomicUsize,
    /// Shared with the other shards.
    pub(crate) signal: Arc<Signal>,
}

/// The application's side of a listener. Nothing blocks.
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

    /// Whether another connection may open.
    pub(crate) fn has_room(&self) -> bool {
        self.opening.load(Ordering::Relaxed) + self.waiting.load(Ordering::Relaxed) < self.backlog
    }

    /// Whether another open connection may wait.
    pub(crate) fn accepts(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < self.backlog
    }

    /// Counts a connection that is opening.
    pub(crate) fn one_opens(&self) {
        self.opening.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that a connection is no longer opening: it is open, or has failed.
    pub(crate) fn one_opens_no_more(&self) {
        self.opening.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records that SYNs were answered by cookies, which may be returned until `until`.
    pub(crate) fn expect_cookies(&self, until: Instant) {
        self.cookies_until.store(until.as_nanos(), Ordering::Relaxed);
    }

    /// Whether a cookie may be returned at `now`. At other times guessing one is useless.
    pub(crate) fn expects_cookies(&self, now: Instant) -> bool {
        now.as_nanos() < self.cookies_until.load(Ordering::Relaxed)
    }

    /// Adds an open connection.
    pub(crate) fn push(&self, cell: Arc<Cell<B>>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Sending cannot fail: the other end lives as long as this.
        let _sent = self.ready.send(cell);
        self.signal.notify();
    }

    /// The connection that waits longest.
    pub(crate) fn pop(&self) -> Option<Arc<Cell<B>>> {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = accepted.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(cell)
    }
}

/// The application's handle to a listener. Dropping it closes the listener.
pub(crate) struct BoundListener<B> {
    address: SocketAddr,
    parts: Vec<Part<B>>,
    signal: Arc<Signal>,
    /// Counts calls, which ask the shards in turn.
    calls: AtomicUsize,
}

/// A listener's part on one shard.
pub(crate) struct Part<B> {
    pub(crate) listening: Arc<Listening<B>>,
    pub(crate) post: Arc<Post<B>>,
}

impl<B: Send + Sync + 'static> CastPost for Part<B> {
    fn act(&self, act: CastAct) {
        self.post.send_cast(CastCommand::Act(Arc::clone(&self.listening), act));
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> BoundListener<B> {
    pub(crate) fn bind(
        address: SocketAddr,
        parts: Vec<Part<B>>,
        signal: Arc<Signal>,
    ) -> Arc<dyn Accept> {
        Arc::new(Self { address, parts, signal, calls: AtomicUsize::new(0) })
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
        self.address
    }
}

impl<B> Drop for BoundListener<B> {
    fn drop(&mut self) {
        if let Some(first) = self.parts.first() {
            first.post.listeners.give_back(self.address);
        }
        for Part { listening, post } in &self.parts {
            post.send(Command::Unlisten(Arc::clone(listening)));
        }
    }
}

/// The error if the worker has ended.
pub(crate) fn worker_ended() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the host has been stopped; start another")
}
