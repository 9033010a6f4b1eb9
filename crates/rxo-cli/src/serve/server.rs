//! Loop of the server: accepts clients, lets the ready ones continue, and prints a line for each request.
//!
//! Each worker has a loop, which runs on one thread and waits for the host's sockets, file readers and the next deadline together.
//! [`rxo_serve::Server`] enforces the limits of each client.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rxo_driver::heap;
use rxo_host::{Readiness, SharedBytes, TcpStream};
use rxo_serve::files::Root;
use rxo_serve::{Client, Exchange, Places, Rules, Server, Text};

use super::plan::Plan;
use super::slack::Slack;
use crate::hosting::Listeners;

/// A client's connection on rxo's own TCP stack.
pub(super) struct Guest(TcpStream);

impl Client for Guest {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }

    fn write(&mut self, bytes: &[u8], text: Option<&Text>) -> io::Result<usize> {
        match text {
            // The connection keeps the page until the client has acknowledged it, so nothing is copied.
            Some(text) if text.is_most_of_its_page() => {
                self.0.write_both(bytes, &mut SharedBytes::from_owner(text.clone()))
            }
            Some(text) if bytes.is_empty() => self.0.write(text.as_ref()),
            Some(text) => self.0.write(&[bytes, text.as_ref()].concat()),
            None => self.0.write(bytes),
        }
    }

    fn in_flight_bytes(&mut self) -> u64 {
        self.0.unacknowledged_bytes() as u64
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)
    }

    fn reset(&mut self) {
        self.0.abort();
    }
}

/// The loop of the server: its listeners, its clients, and the events for which the loop waits.
pub(super) struct Loop {
    listeners: Listeners,
    readiness: Readiness,
    server: Server<'static>,
    /// `true` if a connection may be waiting, so that accepting must be tried.
    may_have_pending: bool,
    ready: Vec<u64>,
    slack: Slack,
}

impl Loop {
    /// Creates one of `loops` loops, which serves the directory `root` to the clients of `listeners` and
    /// counts them in `places`, together with the clients of the other loops.
    pub(super) fn new(
        plan: &Plan,
        loops: usize,
        (root, places): (Arc<Root>, Places),
        listeners: Listeners,
    ) -> io::Result<Self> {
        let readiness = Readiness::new();
        listeners.watch(&readiness, LISTENER_TOKEN)?;
        let rules = Rules {
            limits: plan.limits,
            clients: plan.clients.div_ceil(loops),
            per_peer: plan.per_peer,
            cache_bytes: CACHE_BYTES / loops,
            readers: READERS.div_ceil(loops),
            disk: DISK,
        };
        let wake = readiness.clone();
        let server = Server::new(root, rules, Arc::new(move || wake.notify(READER)));
        Ok(Self {
            listeners,
            readiness,
            server: server.counting_with(places),
            may_have_pending: true,
            ready: Vec::new(),
            slack: Slack::default(),
        })
    }

    /// Serves until `stop` is set; then unfinished answers get one more second. Calls `log` for each exchange that has
    /// ended, and `tick` at least ten times a second.
    ///
    /// # Errors
    /// If no client can connect any more.
    pub(super) fn run(
        &mut self,
        stop: &AtomicBool,
        mut log: impl FnMut(SocketAddr, Exchange),
        tick: &mut dyn FnMut(),
    ) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            tick();
            self.accept()?;
            self.turn(&mut log);
        }
        self.server.end();
        let until = Instant::now() + STOP_TIMEOUT;
        while !self.server.is_empty() && Instant::now() < until {
            self.turn(&mut log);
        }
        Ok(())
    }

    /// Accepts at most [`MOST_ACCEPTED`] clients. Others wait in the host's backlog.
    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..MOST_ACCEPTED {
            if !self.may_accept() {
                break;
            }
            let Some((stream, peer)) = self.listeners.accept()? else {
                self.may_have_pending = false;
                break;
            };
            stream.set_nonblocking(true)?;
            // Answers are written whole, so Nagle's algorithm would only delay them.
            stream.set_nodelay(true)?;
            let readiness = &self.readiness;
            self.server.admit(peer, (Instant::now(), SystemTime::now()), |token| {
                // Fails only if the stream is already watched.
                _ = readiness.watch(&stream, token);
                Guest(stream)
            });
        }
        Ok(())
    }

    fn may_accept(&self) -> bool {
        self.may_have_pending && !self.server.is_full()
    }

    fn turn(&mut self, log: &mut impl FnMut(SocketAddr, Exchange)) {
        let now = Instant::now();
        let due = self.server.poll_at(now).map(|at| at.saturating_duration_since(now));
        let pause = if self.may_accept() { Duration::ZERO } else { PAUSE };
        self.readiness.wait(&mut self.ready, Some(due.map_or(pause, |due| due.min(pause))));
        for token in self.ready.drain(..) {
            self.may_have_pending |= token == LISTENER_TOKEN;
            self.server.ready(token);
        }
        self.server.turn(SystemTime::now(), &mut Instant::now);
        self.server.exchanges().for_each(|(peer, exchange)| log(peer, exchange));
        if self.slack.is_due(self.server.clients(), now) {
            heap::trim();
        }
    }
}

/// Token by which the ready set reports that a connection can be accepted.
const LISTENER_TOKEN: u64 = u64::MAX;
/// Token by which the ready set reports that file readers have finished.
const READER: u64 = u64::MAX - 1;
/// Maximum number of clients accepted in a row before connected clients are served again.
const MOST_ACCEPTED: usize = 256;
/// Maximum time between two checks of the stop flag.
const PAUSE: Duration = Duration::from_millis(100);
/// Time that unfinished answers get after `stop` was set.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// Memory for cached pages of the served files, in bytes, divided among the loops.
const CACHE_BYTES: usize = 64 << 20;
/// The number of threads that read files, divided among the loops; each has at least one. The disk serves few requests
/// at once, so more threads would only wait longer.
const READERS: usize = 4;
/// Maximum time that a client waits for a file to be read from the disk.
const DISK: Duration = Duration::from_secs(30);
