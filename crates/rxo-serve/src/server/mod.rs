//! Many clients at once, in one loop: whose turn it is, whose time is over, and what each may take.
//!
//! Sans-IO but for [`files`](crate::files): the owner has the sockets and the clock. It admits clients, says
//! which of them are [`ready`](Server::ready), and lets all of those take their [`turn`](Server::turn), which
//! never waits. A file that is not in memory is found and read by a few threads, which wake the owner.
//!
//! A client that only waits costs its entry and no buffer. One that does not take its answer costs what is
//! rendered of it: of a file nothing here, because pages are in a cache of a fixed size and are looked up again.
//! What a connection keeps of a page is its owner's: see [`Text::is_most_of_its_page`].

mod places;
mod seat;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use self::places::Places;
pub use self::seat::{Client, Text};
use self::seat::{Rest, Seat, Shared};
use crate::conversation::{Conversation, Exchange, Now};
use crate::files::{Pages, Readers, Root};
use crate::limits::{Limits, READ_BYTES};

/// The rules of a server.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// What one client may take.
    pub limits: Limits,
    /// Most clients. While there are so many, none should be admitted, and none is kept without a request.
    pub clients: usize,
    /// Most clients of one IPv4 address, or one IPv6 /64. Further ones get status 503.
    pub per_peer: usize,
    /// Most bytes of files that are kept in memory.
    pub cache_bytes: usize,
    /// Most threads that read; without any, the server waits for the disk itself.
    pub readers: usize,
    /// Longest time that a client waits for them; then its connection is reset.
    pub disk: Duration,
}

/// The clients of a directory. No type parameter says what they are, so that all of it is compiled here.
pub struct Server<'c> {
    rules: Rules,
    shared: Shared,
    seats: HashMap<u64, Seat<'c>>,
    /// Of these seats, those whose clients have no place.
    turned_away: usize,
    places: Places,
    next_token: u64,
    queue: VecDeque<u64>,
    /// Readers may have brought more than a turn takes.
    may_have_replies: bool,
    /// One entry at most for each seat. It is never later than the seat's deadline, and may be earlier.
    deadlines: BTreeSet<(Instant, u64)>,
    is_ending: bool,
}

impl<'c> Server<'c> {
    /// A server of `root`. Its readers call `wake` when the next turn is due.
    pub fn new(root: Arc<Root>, rules: Rules, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let shared = Shared {
            readers: Readers::new(Arc::clone(&root), rules.readers, rules.clients, wake),
            patience: rules.disk,
            root,
            pages: Pages::new(rules.cache_bytes),
            exchanges: Vec::new(),
            scratch: Box::new([0; READ_BYTES]),
        };
        Self {
            rules,
            shared,
            seats: HashMap::new(),
            turned_away: 0,
            places: Places::default(),
            next_token: 0,
            queue: VecDeque::new(),
            may_have_replies: false,
            deadlines: BTreeSet::new(),
            is_ending: false,
        }
    }

    /// Whether nobody else should be admitted.
    pub fn is_full(&self) -> bool {
        self.seats.len() - self.turned_away >= self.rules.clients
    }

    /// How many clients there are, those who are turned away included.
    pub fn clients(&self) -> usize {
        self.seats.len()
    }

    /// Whether there are no clients.
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Takes a client in, which `seat` makes for its token; it is ready at first. If its address has enough, it
    /// is told so, and what it says is read for a moment: closing at once would reset the connection, and the
    /// answer might be lost. If that goes on with many already, it is dropped. O(log n).
    pub fn admit<C: Client + 'c>(
        &mut self,
        peer: SocketAddr,
        now: (Instant, SystemTime),
        seat: impl FnOnce(u64) -> C,
    ) {
        let has_place = self.places.take(peer.ip(), self.rules.per_peer);
        let conversation = if has_place {
            Conversation::new(self.rules.limits)
        } else if self.turned_away < MOST_TURNED_AWAY {
            self.turned_away += 1;
            let now = Now { instant: now.0, date: now.1, may_stay: false };
            let why = "too many connections of one address";
            Conversation::turned_away(why, &self.rules.limits, now)
        } else {
            return;
        };
        let token = self.next_token;
        self.next_token += 1;
        self.seats.insert(token, Seat::new(Box::new(seat(token)), peer, conversation, has_place));
        self.ready(token);
    }

    /// Notes that a client may be able to go on. Nothing if there is none of that token.
    pub fn ready(&mut self, token: u64) {
        if let Some(seat) = self.seats.get_mut(&token)
            && !std::mem::replace(&mut seat.is_queued, true)
        {
            self.queue.push_back(token);
        }
    }

    /// Keeps nobody beyond the present answer.
    pub fn end(&mut self) {
        self.is_ending = true;
    }

    /// Lets everybody who is ready go on. At most [`MOST_DRIVEN`] clients, and as many for whom something was
    /// read; if there are more, the next turn is due at once.
    pub fn turn(&mut self, date: SystemTime, clock: &mut dyn FnMut() -> Instant) {
        self.may_have_replies = (0..MOST_DRIVEN).all(|_| self.take_reply(date, clock));
        self.wake_due(clock());
        for _ in 0..self.queue.len().min(MOST_DRIVEN) {
            let Some(token) = self.queue.pop_front() else { break };
            let Some(seat) = self.seats.get_mut(&token) else { continue };
            seat.is_queued = false;
            self.drive(token, date, clock);
        }
    }

    /// When the next turn is due if nobody is ready before; `None` if nothing is waited for.
    pub fn poll_at(&self, now: Instant) -> Option<Instant> {
        let first = self.deadlines.first().map(|(at, _)| *at);
        let is_due =
            !self.queue.is_empty() || self.may_have_replies || self.shared.readers.has_done_here();
        if is_due { Some(now) } else { first }
    }

    /// The requests whose answers have been sent since the last call, or as much of them as could be.
    pub fn exchanges(&mut self) -> impl Iterator<Item = (SocketAddr, Exchange)> {
        self.shared.exchanges.drain(..)
    }

    /// Uses what a reader has brought at once, so that no more than that is held. Returns `false` if there is
    /// nothing.
    fn take_reply(&mut self, date: SystemTime, clock: &mut dyn FnMut() -> Instant) -> bool {
        let Some((token, opened, reply)) = self.shared.readers.next() else { return false };
        // Its client may have gone.
        if let Some(seat) = self.seats.get_mut(&token) {
            seat.brought(opened, reply, &mut self.shared.pages, date);
            self.drive(token, date, clock);
        }
        true
    }

    fn drive(&mut self, token: u64, date: SystemTime, clock: &mut dyn FnMut() -> Instant) {
        let may_stay = !self.is_full() && !self.is_ending;
        let Some(seat) = self.seats.get_mut(&token) else { return };
        match seat.drive(token, &mut self.shared, date, may_stay, clock) {
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
            if let Some(seat) = self.seats.get_mut(&token) {
                seat.deadline = None;
            }
            self.ready(token);
        }
    }

    /// An entry that is too early is renewed when its time comes; that is rarer than a new deadline.
    fn wait_until(&mut self, token: u64, until: Instant) {
        let Some(seat) = self.seats.get_mut(&token) else { return };
        if seat.deadline.is_some_and(|earlier| earlier <= until) {
            return;
        }
        if let Some(later) = seat.deadline.replace(until) {
            self.deadlines.remove(&(later, token));
        }
        self.deadlines.insert((until, token));
    }

    fn remove(&mut self, token: u64) {
        let Some(seat) = self.seats.remove(&token) else { return };
        if let Some(at) = seat.deadline {
            self.deadlines.remove(&(at, token));
        }
        if seat.has_place {
            self.places.give_back(seat.peer.ip());
        } else {
            self.turned_away -= 1;
        }
    }
}

impl fmt::Debug for Server<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("clients", &self.seats.len()).finish()
    }
}

/// The most clients that one turn lets go on.
pub const MOST_DRIVEN: usize = 256;
/// The most clients without a place whose answer is waited for.
const MOST_TURNED_AWAY: usize = 64;

#[cfg(test)]
mod tests;
