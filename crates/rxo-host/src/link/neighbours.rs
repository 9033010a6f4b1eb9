//! The neighbour table: link-layer addresses, with the states of RFC 4861, section 7.3.2, for ARP as well.
//!
//! Separate because it knows addresses and time, but no packets: it says which requests to send, and is told
//! what was received. The number of entries is bounded, and a flood of addresses fills at most half of them:
//!
//! * an entry that this host never asked for is evicted first, the oldest before the others;
//! * then, if half of all wait for an answer, the one of them that was requested first;
//! * then the least recently used one. A gateway is never evicted.
//!
//! Indices find the next entry to evict and the next that is due: no operation looks at all entries.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use rxo_frame::{Duration, Instant};

/// A link-layer address.
pub(super) type Mac = [u8; 6];

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    entries: BTreeMap<IpAddr, Neighbour>,
    /// All entries, in the order in which they are evicted.
    order: BTreeSet<(Rank, Instant, IpAddr)>,
    /// All entries, in the order in which their states end.
    due: BTreeSet<(Instant, IpAddr)>,
    /// How many entries have no link-layer address yet.
    waiting: usize,
    gateways: Vec<IpAddr>,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    mac: Mac,
    state: State,
    /// When the state ends by itself.
    until: Instant,
    /// When this host last sent a packet to it; `None` if it never did.
    used_at: Option<Instant>,
    /// When the last message about it was received.
    heard_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A request was sent to all; there is no answer.
    Incomplete { asked: u8 },
    /// It has answered recently.
    Reachable,
    /// It has not answered recently, and nothing was sent to it since.
    Stale,
    /// It has not answered recently, and something was sent to it: a response may confirm it.
    Delay,
    /// A request was sent to it alone.
    Probe { asked: u8 },
    /// There was no answer; no request is sent for a while.
    Failed,
}

/// The result of [`Neighbours::resolve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Mac(Mac),
    /// The address has been requested.
    Pending,
    /// The caller is to send a request now.
    Ask,
    /// There was no answer.
    Failed,
    /// The table holds gateways only.
    Full,
}

/// A request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) ip: IpAddr,
    /// The station to ask; `None` asks all.
    pub(super) mac: Option<Mac>,
}

/// A message about a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) ip: IpAddr,
    /// Its link-layer address, if the message says it.
    pub(super) mac: Option<Mac>,
    /// Whether it answers a request of this host.
    pub(super) is_answer: bool,
    /// Whether its address replaces a different one that is known.
    pub(super) overrides: bool,
    /// Whether it was sent to this host, so that an answer is likely to follow.
    pub(super) is_for_us: bool,
}

impl Neighbours {
    /// A table of `limit` entries, more than there are `gateways`.
    pub(super) fn new(limit: usize, gateways: Vec<IpAddr>) -> Self {
        let (entries, order, due) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { entries, order, due, waiting: 0, gateways, limit }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// When [`Neighbours::on_timeout`] is to be called; `None` if no timer runs.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The link-layer address for a packet to `ip`.
    pub(super) fn resolve(&mut self, ip: IpAddr, now: Instant) -> Known {
        let used = self.change(ip, |entry| {
            entry.used_at = Some(now);
            if entry.state == State::Stale {
                (entry.state, entry.until) = (State::Delay, now + DELAY_FIRST_PROBE);
            }
            *entry
        });
        let Some(entry) = used else { return self.begin(ip, now) };
        match entry.state {
            State::Incomplete { .. } => Known::Pending,
            State::Failed => Known::Failed,
            _ => Known::Mac(entry.mac),
        }
    }

    fn begin(&mut self, ip: IpAddr, now: Instant) -> Known {
        if !self.make_room(true) {
            return Known::Full;
        }
        let state = State::Incomplete { asked: 1 };
        let until = now + RETRANSMIT;
        let used_at = Some(now);
        self.insert(ip, Neighbour { mac: [0; 6], state, until, used_at, heard_at: now });
        Known::Ask
    }

    /// Confirms that packets to `ip` arrive, as the transport knows (RFC 4861, section 7.3.1).
    pub(super) fn confirm(&mut self, ip: IpAddr, now: Instant) {
        self.change(ip, |entry| {
            if entry.has_mac() {
                (entry.state, entry.until) = (State::Reachable, now + REACHABLE);
                entry.heard_at = now;
            }
        });
    }

    /// Takes a message. Returns whether the neighbour has become reachable, so that waiting packets may be sent
    /// (RFC 4861, section 7.2.5; RFC 826).
    pub(super) fn hear(&mut self, heard: &Heard, now: Instant) -> bool {
        let news = self.change(heard.ip, |entry| {
            let had_mac = entry.has_mac();
            entry.hear(heard, now);
            entry.has_mac() && !had_mac
        });
        if news.is_none() {
            self.learn(heard, now);
        }
        news.unwrap_or(false)
    }

    /// Adds a neighbour that this host did not ask for.
    fn learn(&mut self, heard: &Heard, now: Instant) {
        let Some(mac) = heard.mac.filter(|_| heard.is_for_us && !heard.is_answer) else { return };
        if self.make_room(false) {
            let until = now + UNUSED;
            let state = State::Stale;
            self.insert(heard.ip, Neighbour { mac, state, until, used_at: None, heard_at: now });
        }
    }

    /// Does what is due at `now`, and passes each request to send to `ask`. Looks at no other entry.
    pub(super) fn on_timeout(&mut self, now: Instant, mut ask: impl FnMut(Ask)) {
        while self.next_at().is_some_and(|at| at <= now) {
            let Some((_, ip)) = self.due.pop_first() else { return };
            let expired = self.change(ip, |entry| (entry.expire(now), entry.asks()));
            match expired {
                Some((true, asks)) => asks.into_iter().for_each(|mac| ask(Ask { ip, mac })),
                Some((false, _)) => self.remove(ip),
                None => {}
            }
        }
    }

    fn insert(&mut self, ip: IpAddr, entry: Neighbour) {
        self.entries.insert(ip, entry);
        self.enter(ip, entry);
    }

    fn remove(&mut self, ip: IpAddr) {
        if let Some(entry) = self.entries.remove(&ip) {
            self.leave(ip, entry);
        }
    }

    /// Applies `change` to the entry of `ip`, if there is one.
    fn change<R>(&mut self, ip: IpAddr, change: impl FnOnce(&mut Neighbour) -> R) -> Option<R> {
        let entry = self.entries.get_mut(&ip)?;
        let before = *entry;
        let result = change(entry);
        let after = *entry;
        self.leave(ip, before);
        self.enter(ip, after);
        Some(result)
    }

    /// Adds an entry to the indices.
    fn enter(&mut self, ip: IpAddr, entry: Neighbour) {
        self.waiting += usize::from(!entry.has_mac());
        self.order.insert(self.turn_of(ip, entry));
        self.due.insert((entry.until, ip));
    }

    fn leave(&mut self, ip: IpAddr, entry: Neighbour) {
        self.waiting -= usize::from(!entry.has_mac());
        self.order.remove(&self.turn_of(ip, entry));
        self.due.remove(&(entry.until, ip));
    }

    /// The order of eviction: the least is first.
    fn turn_of(&self, ip: IpAddr, entry: Neighbour) -> (Rank, Instant, IpAddr) {
        match entry.used_at {
            _ if self.gateways.contains(&ip) => (Rank::Gateway, entry.heard_at, ip),
            _ if !entry.has_mac() => (Rank::Unanswered, entry.heard_at, ip),
            None => (Rank::Unwanted, entry.heard_at, ip),
            Some(used_at) => (Rank::Used, used_at, ip),
        }
    }

    /// Makes room for another entry by eviction. Returns whether there is room. An entry that this host wants
    /// may evict any but a gateway.
    fn make_room(&mut self, is_wanted: bool) -> bool {
        let has_too_many = is_wanted && self.waiting >= self.limit.div_ceil(2);
        if self.entries.len() < self.limit && !has_too_many {
            return true;
        }
        let first = |rank| {
            let from = (rank, Instant::ZERO, LEAST_IP);
            self.order.range(from..).next().filter(|(found, ..)| *found == rank)
        };
        let given_up = match (is_wanted, has_too_many) {
            (true, true) => first(Rank::Unanswered),
            (true, false) => {
                first(Rank::Unwanted).or(first(Rank::Used)).or(first(Rank::Unanswered))
            }
            (false, _) => first(Rank::Unwanted),
        };
        let Some(ip) = given_up.map(|(.., ip)| *ip) else { return false };
        self.remove(ip);
        true
    }
}

/// The rank of an entry. The lowest is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// This host never requested it.
    Unwanted,
    /// There was no answer.
    Unanswered,
    Used,
    Gateway,
}

impl Neighbour {
    fn has_mac(&self) -> bool {
        !matches!(self.state, State::Incomplete { .. } | State::Failed)
    }

    fn hear(&mut self, heard: &Heard, now: Instant) {
        let Some(mac) = heard.mac.or(self.has_mac().then_some(self.mac)) else { return };
        self.heard_at = now;
        let differs = self.has_mac() && mac != self.mac;
        if differs && !heard.overrides {
            if self.state == State::Reachable {
                (self.state, self.until) = (State::Stale, now + UNUSED);
            }
            return;
        }
        if heard.is_answer {
            (self.state, self.until) = (State::Reachable, now + REACHABLE);
        } else if differs || !self.has_mac() {
            (self.state, self.until) = (State::Stale, now + UNUSED);
        }
        self.mac = mac;
    }

    /// Ends the state. Returns `false` if the entry is no longer needed.
    fn expire(&mut self, now: Instant) -> bool {
        let (state, wait) = match self.state {
            State::Incomplete { asked } if asked < MOST_ASKED => {
                (State::Incomplete { asked: asked + 1 }, RETRANSMIT)
            }
            State::Incomplete { .. } => (State::Failed, FORGET_FAILURE),
            State::Reachable => (State::Stale, UNUSED),
            State::Delay => (State::Probe { asked: 1 }, RETRANSMIT),
            State::Probe { asked } if asked < MOST_ASKED => {
                (State::Probe { asked: asked + 1 }, RETRANSMIT)
            }
            State::Stale | State::Probe { .. } | State::Failed => return false,
        };
        (self.state, self.until) = (state, now + wait);
        true
    }

    /// The request that the state sends.
    fn asks(&self) -> Option<Option<Mac>> {
        match self.state {
            State::Incomplete { .. } => Some(None),
            State::Probe { .. } => Some(Some(self.mac)),
            _ => None,
        }
    }
}

/// RFC 4861, section 10: `RETRANS_TIMER`.
const RETRANSMIT: Duration = Duration::from_secs(1);
/// RFC 4861, section 10: `MAX_MULTICAST_SOLICIT` and `MAX_UNICAST_SOLICIT`.
const MOST_ASKED: u8 = 3;
/// RFC 4861, section 10: `REACHABLE_TIME`.
const REACHABLE: Duration = Duration::from_secs(30);
/// RFC 4861, section 10: `DELAY_FIRST_PROBE_TIME`.
const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);
/// How long an entry is kept that is not used and that no message is about.
const UNUSED: Duration = Duration::from_secs(600);
/// How long a neighbour that did not answer is not requested again.
const FORGET_FAILURE: Duration = Duration::from_secs(1);
const LEAST_IP: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

#[cfg(test)]
mod tests;
