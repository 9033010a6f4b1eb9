//! The server: runs many clients in one loop, with deadlines and limits for each.
//!
//! The server is sans-IO except for [`files`](crate::files): its owner has the sockets and the clock. The owner
//! admits clients, marks clients that are [`ready`](Server::ready), and lets them proceed in a
//! [`turn`](Server::turn), which never blocks. Files that are not in memory are found and read by a few
//! threads, which wake the owner.
//!
//! An idle client costs one table entry and no buffer. A client that stops reading its answer costs at most one
//! piece of generated content. The client pins no file data: only the file position is stored, and the page is
//! looked up in a cache of fixed size when sending continues. If the owner of the server keeps a page in a
//! connection, the owner must limit that memory: see [`Text::is_most_of_its_page`].

mod places;
mod session;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub use self::places::Places;
pub use self::session::{Client, Text};
use self::session::{Rest, Session, Shared};
use crate::conversation::{Conversation, Exchange, Now};
use crate::files::{Pages, Readers, Root};
use crate::limits::{Limits, READ_BYTES};

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The limits of each client.
    pub limits: Limits,
    /// Maximum number of clients. At this number, the owner should admit no further clients, and the server
    /// keeps no idle clients.
    pub clients: usize,
    /// Maximum number of clients per IPv4 address, or per IPv6 /64. A further client from this address gets
    /// status 503.
    pub per_peer: usize,
    /// Size of the cache of file contents, in bytes.
    pub cache_bytes: usize,
    /// Maximum number of reader threads; with 0, the thread that calls [`Server::turn`] waits for the disk.
    pub readers: usize,
    /// Maximum time that a client waits for a reader thread; after this time its connection is reset.
    pub disk: Duration,
}

/// A server of one directory, with its clients. The type is not generic over the client type, so that the code
/// is compiled in this crate.
pub struct Server<'c> {
    rules: Rules,
    shared: Shared,
    sessions: HashMap<u64, Session<'c>>,
    /// The number of clients that are being turned away, because their address has too many clients.
    turned_away: usize,
    places: Places,
    next_token: u64,
    queue: VecDeque<u64>,
    /// `true` if reader threads may have delivered more replies than the last turn took.
    may_have_replies: bool,
    /// The deadlines of the clients, with the client's token: at most one entry per client, never later than
    /// the client's deadline, but possibly earlier.
    deadlines: BTreeSet<(Instant, u64)>,
    is_ending: bool,
}

impl<'c> Server<'c> {
    /// Creates a server of the directory `root`. Its reader threads call `wake` after each job, so that the owner
    /// runs the next turn.
    pub fn new(root: Arc<Root>, rules: Rules, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let shared = Shared {
            readers: Readers::new(Arc::clone(&root), rules.readers, rules.clients, wake),
            disk_timeout: rules.disk,
            root,
            pages: Pages::new(rules.cache_bytes),
            exchanges: Vec::new(),
            scratch: Box::new([0; READ_BYTES]),
        };
        Self {
            rules,
            shared,
            sessions: HashMap::new(),
            turned_away: 0,
            places: Places::default(),
            next_token: 0,
            queue: VecDeque::new(),
            may_have_replies: false,
            deadlines: BTreeSet::new(),
            is_ending: false,
        }
    }

    /// Lets this server count the clients of each address together with all servers that have a clone of
    /// `places`, such as the servers of one host on several threads. Call this before the first client is
    /// admitted.
    #[must_use]
    pub fn counting_with(self, places: Places) -> Self {
        Self { places, ..self }
    }

    /// Returns `true` if no further client should be admitted.
    pub fn is_full(&self) -> bool {
        self.sessions.len() - self.turned_away >= self.rules.clients
    }

    /// Returns the number of clients, including those that are being turned away.
    pub fn clients(&self) -> usize {
        self.sessions.len()
    }

    /// Returns `true` if there are no clients.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Admits a client, which `client` creates from its token. The client counts as ready at first. If the
    /// client's address has too many clients, it gets status 503, and its bytes are read and ignored for a
    /// short time: closing at once would reset the connection, and the answer might be lost. If 64 clients are
    /// being turned away already, the client is dropped. O(log n).
    pub fn admit<C: Client + 'c>(
        &mut self,
        peer: SocketAddr,
        now: (Instant, SystemTime),
        client: impl FnOnce(u64) -> C,
    ) {
        let has_place = self.places.take(peer.ip(), self.rules.per_peer);
        let conversation = if has_place {
            Conversation::new(self.rules.limits)
        } else if self.turned_away < MOST_TURNED_AWAY {
            self.turned_away += 1;
            let now = Now { instant: now.0, date: now.1, may_stay: false };
            let why = "too many connections of one address";
            Conversation::refused(why, &self.rules.limits, now)
        } else {
            return;
        };
        let token = self.next_token;
        self.next_token += 1;
        self.sessions
            .insert(token, Session::new(Box::new(client(token)), peer, conversation, has_place));
        self.ready(token);
    }

    /// Marks the client with this token as able to proceed. Does nothing if no client has this token.
    pub fn ready(&mut self, token: u64) {
        if let Some(session) = self.sessions.get_mut(&token)
            && !std::mem::replace(&mut session.is_queued, true)
        {
            self.queue.push_back(token);
        }
    }

    /// Ends the connection of each client after its current answer.
    pub fn end(&mut self) {
        self.is_ending = true;
    }

    /// Processes at most [`MOST_DRIVEN`] replies of reader threads, and lets at most as many ready clients
    /// proceed. If more are waiting, the next turn is due at once. `date` is the time of day, `clock` the
    /// monotonic time.
    pub fn turn(&mut self, date: SystemTime, clock: &mut dyn FnMut() -> Instant) {
        self.may_have_replies = (0..MOST_DRIVEN).all(|_| self.take_reply(date, clock));
        self.wake_due(clock());
        for _ in 0..self.queue.len().min(MOST_DRIVEN) {
            let Some(token) = self.queue.pop_front() else { break };
            let Some(session) = self.sessions.get_mut(&token) else { continue };
            session.is_queued = false;
            self.drive(token, date, clock);
        }
    }

    /// Returns the time at which the next turn is due if no client becomes ready before; `None` if no
    /// deadline is set.
    pub fn poll_at(&self, now: Instant) -> Option<Instant> {
        let first = self.deadlines.first().map(|(at, _)| *at);
        let is_due = !self.queue.is_empty()
            || self.may_have_replies
            || self.shared.readers.has_own_replies();
        if is_due { Some(now) } else { first }
    }

    /// Removes and returns the exchanges (request and answer) that ended since the last call, complete or
    /// not.
    pub fn exchanges(&mut self) -> impl Iterator<Item = (SocketAddr, Exchange)> {
        self.shared.exchanges.drain(..)
    }

    /// Processes one reply of a reader thread. The server holds only one reply at a time. Returns `false` if no
    /// reply waits.
    fn take_reply(&mut self, date: SystemTime, clock: &mut dyn FnMut() -> Instant) -> bool {
        let Some((token, opened, reply)) = self.shared.readers.next() else { return false };
        // The client may have gone.
        if let Some(session) = self.sessions.get_mut(&token) {
            session.on_reply(opened, reply, &mut self.shared.pages, date);
            self.drive(token, date, clock);
        }
        true
    }

    fn drive(&mut self, token: u64, date: SystemTime, clock: &mut dyn FnMut() -> Instant) {
        let may_stay = !self.is_full() && !self.is_ending;
        let Some(session) = self.sessions.get_mut(&token) else { return };
        match session.drive(token, &mut self.shared, date, may_stay, clock) {
            Rest::Until(until) => self.wait_until(token, until),
            Rest::Turn => self.ready(token),
            Rest::Over => self.remove(token),
        }
    }

    fn wake_due(&mut self, now: Instant) {
        while let Some((at, token)) = self.deadlines.first().copied()
            && at <= now
        {
            self.deadlines.pop_first();
            if let Some(session) = self.sessions.get_mut(&token) {
                session.deadline = None;
            }
            self.ready(token);
        }
    }

    /// Sets the deadline of the client with this token. An entry with an earlier time stays and is renewed
    /// when it expires, because entries expire more rarely than deadlines change.
    fn wait_until(&mut self, token: u64, until: Instant) {
        let Some(session) = self.sessions.get_mut(&token) else { return };
        if session.deadline.is_some_and(|earlier| earlier <= until) {
            return;
        }
        if let Some(later) = session.deadline.replace(until) {
            self.deadlines.remove(&(later, token));
        }
        self.deadlines.insert((until, token));
    }

    fn remove(&mut self, token: u64) {
        let Some(session) = self.sessions.remove(&token) else { return };
        if let Some(at) = session.deadline {
            self.deadlines.remove(&(at, token));
        }
        if session.has_place {
            self.places.release(session.peer.ip());
        } else {
            self.turned_away -= 1;
        }
    }
}

impl fmt::Debug for Server<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("clients", &self.sessions.len()).finish()
    }
}

/// The maximum number of clients that proceed in one turn, and of replies that one turn processes.
pub const MOST_DRIVEN: usize = 256;
/// Maximum number of clients that are being turned away.
const MOST_TURNED_AWAY: usize = 64;

#[cfg(test)]
mod tests;
