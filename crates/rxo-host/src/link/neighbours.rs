//! The neighbour table: maps IP addresses to link-layer addresses, with the states of RFC 4861, section 7.3.2,
//! which are also used for ARP.
//!
//! The table handles addresses and times, but no packets: it decides which requests to send, and processes
//! parsed answers. The number of entries is bounded, and a flood of unanswered addresses fills at most half of
//! the entries. The order of eviction is:
//!
//! * an entry whose address this host never requested, the oldest first;
//! * if half of all entries wait for an answer, the entry whose address was requested first;
//! * the least recently used entry. A gateway is never evicted.
//!
//! Sorted indices give the next entry to evict and the next timer: no operation visits all entries.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use rxo_frame::{Duration, Instant};

/// An Ethernet address.
pub(super) type Mac = [u8; 6];

/// A bounded table of neighbours.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    entries: BTreeMap<IpAddr, Neighbour>,
    /// The keys of all entries in the order in which they would be evicted.
    order: BTreeSet<(Rank, Instant, IpAddr)>,
    /// The addresses of all entries in the order of their timers.
    due: BTreeSet<(Instant, IpAddr)>,
    /// Number of entries without a link-layer address.
    waiting: usize,
    gateways: Vec<IpAddr>,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    mac: Mac,
    state: State,
    /// The time at which the timer of the neighbour's state expires.
    until: Instant,
    /// The time at which this host last sent a packet to the neighbour; `None` if it never did.
    used_at: Option<Instant>,
    /// The time of the last received message about this neighbour.
    updated_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A request was sent to all stations, `asked` times so far, and no station has answered.
    Incomplete { asked: u8 },
    /// The neighbour has answered, or TCP has confirmed it, recently.
    Reachable,
    /// The neighbour has not answered recently, and no packet was sent to the neighbour since.
    Stale,
    /// The neighbour has not answered recently, and a packet was sent to the neighbour. An ACK may still
    /// confirm that the neighbour is reachable.
    Delay,
    /// Requests were sent to the neighbour alone, `asked` times so far.
    Probe { asked: u8 },
    /// The neighbour did not answer; no request is sent for [`FORGET_FAILURE`].
    Failed,
}

/// The result of resolving a neighbour's link-layer address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeighbourLookup {
    Mac(Mac),
    /// The link-layer address is unknown and was already requested.
    Pending,
    /// The link-layer address is unknown. The caller must send a request now.
    Ask,
    /// The neighbour did not answer requests for its address.
    Failed,
    /// The table has no space for the neighbour, because only gateways could be evicted.
    Full,
}

/// A request to be sent for a neighbour's link-layer address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) ip: IpAddr,
    /// The station to which the request must be sent; `None` sends the request to all stations.
    pub(super) mac: Option<Mac>,
}

/// The content of a received message about a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeighbourMessage {
    pub(super) ip: IpAddr,
    /// The link-layer address in the message; `None` if there is none.
    pub(super) mac: Option<Mac>,
    /// `true` if the message answers a request of this host.
    pub(super) is_answer: bool,
    /// `true` if the address in the message may replace a different known address of the neighbour.
    pub(super) overrides: bool,
    /// `true` if the message was sent to this host, which will then probably send packets to the neighbour
    /// soon.
    pub(super) is_for_us: bool,
}

impl Neighbours {
    /// Creates a table of `limit` entries, which must exceed the number of `gateways`.
    pub(super) fn new(limit: usize, gateways: Vec<IpAddr>) -> Self {
        let (entries, order, due) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { entries, order, due, waiting: 0, gateways, limit }
    }

    /// Returns the number of entries in the table, resolved or not.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the deadline at which to call [`Neighbours::on_timeout`]; `None` if no timer runs.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns the link-layer address for a packet to the neighbour `ip`. Adds an entry if there is none, and
    /// marks it as used.
    pub(super) fn resolve(&mut self, ip: IpAddr, now: Instant) -> NeighbourLookup {
        let used = self.change(ip, |entry| {
            entry.used_at = Some(now);
            if entry.state == State::Stale {
                (entry.state, entry.until) = (State::Delay, now + DELAY_FIRST_PROBE);
            }
            *entry
        });
        let Some(entry) = used else { return self.begin(ip, now) };
        match entry.state {
            State::Incomplete { .. } => NeighbourLookup::Pending,
            State::Failed => NeighbourLookup::Failed,
            _ => NeighbourLookup::Mac(entry.mac),
        }
    }

    fn begin(&mut self, ip: IpAddr, now: Instant) -> NeighbourLookup {
        if !self.make_room(true) {
            return NeighbourLookup::Full;
        }
        let state = State::Incomplete { asked: 1 };
        let until = now + RETRANSMIT;
        let used_at = Some(now);
        self.insert(ip, Neighbour { mac: [0; 6], state, until, used_at, updated_at: now });
        NeighbourLookup::Ask
    }

    /// Records that packets to `ip` arrive, as TCP reports (RFC 4861, section 7.3.1).
    pub(super) fn confirm(&mut self, ip: IpAddr, now: Instant) {
        self.change(ip, |entry| {
            if entry.has_mac() {
                (entry.state, entry.until) = (State::Reachable, now + REACHABLE);
                entry.updated_at = now;
            }
        });
    }

    /// Processes a message about a neighbour. Returns `true` if the neighbour has just become reachable, so
    /// that waiting packets may be sent (RFC 4861, section 7.2.5; RFC 826).
    pub(super) fn update(&mut self, message: &NeighbourMessage, now: Instant) -> bool {
        let updated = self.change(message.ip, |entry| {
            let had_mac = entry.has_mac();
            entry.update(message, now);
            entry.has_mac() && !had_mac
        });
        if updated.is_none() {
            self.learn(message, now);
        }
        updated.unwrap_or(false)
    }

    /// Adds a neighbour that this host did not ask for, if the message was sent to this host.
    fn learn(&mut self, message: &NeighbourMessage, now: Instant) {
        let Some(mac) = message.mac.filter(|_| message.is_for_us && !message.is_answer) else {
            return;
        };
        if self.make_room(false) {
            let until = now + UNUSED;
            let state = State::Stale;
            self.insert(
                message.ip,
                Neighbour { mac, state, until, used_at: None, updated_at: now },
            );
        }
    }

    /// Runs the timers that have expired at `now`, and passes each request to send to `ask`. Only entries with
    /// expired timers are visited.
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

    /// Applies `change` to the entry of `ip` and updates the indices. `None` if there is no entry.
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

    /// Returns the key of an entry in the order of eviction; the smallest is evicted first.
    fn turn_of(&self, ip: IpAddr, entry: Neighbour) -> (Rank, Instant, IpAddr) {
        match entry.used_at {
            _ if self.gateways.contains(&ip) => (Rank::Gateway, entry.updated_at, ip),
            _ if !entry.has_mac() => (Rank::Unanswered, entry.updated_at, ip),
            None => (Rank::Unwanted, entry.updated_at, ip),
            Some(used_at) => (Rank::Used, used_at, ip),
        }
    }

    /// Makes space for another entry, by eviction if needed. Returns `false` if there is no space. If this host
    /// requests the address of the new entry (`is_wanted`), evicts in the order of the module's documentation;
    /// otherwise evicts only an entry whose address this host never requested.
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

/// The class of an entry in the order of eviction; the lowest is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The lowest class: this host never sent a packet to the neighbour.
    Unwanted,
    /// The neighbour has not answered a request.
    Unanswered,
    Used,
    Gateway,
}

impl Neighbour {
    fn has_mac(&self) -> bool {
        !matches!(self.state, State::Incomplete { .. } | State::Failed)
    }

    fn update(&mut self, message: &NeighbourMessage, now: Instant) {
        let Some(mac) = message.mac.or(self.has_mac().then_some(self.mac)) else { return };
        self.updated_at = now;
        let differs = self.has_mac() && mac != self.mac;
        if differs && !message.overrides {
            if self.state == State::Reachable {
                (self.state, self.until) = (State::Stale, now + UNUSED);
            }
            return;
        }
        if message.is_answer {
            (self.state, self.until) = (State::Reachable, now + REACHABLE);
        } else if differs || !self.has_mac() {
            (self.state, self.until) = (State::Stale, now + UNUSED);
        }
        self.mac = mac;
    }

    /// Moves the entry to its next state when its timer expires. Returns `false` if the entry must be
    /// removed.
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

    /// Returns the destination of the request for a neighbour in this state: `None` for no request,
    /// `Some(None)` for all stations, `Some(Some(mac))` for the station `mac`.
    fn asks(&self) -> Option<Option<Mac>> {
        match self.state {
            State::Incomplete { .. } => Some(None),
            State::Probe { .. } => Some(Some(self.mac)),
            _ => None,
        }
    }
}

/// Time between two requests for an address: `RETRANS_TIMER` of RFC 4861, section 10.
const RETRANSMIT: Duration = Duration::from_secs(1);
/// Maximum number of requests for an address: `MAX_MULTICAST_SOLICIT` and `MAX_UNICAST_SOLICIT` of RFC 4861,
/// section 10.
const MOST_ASKED: u8 = 3;
/// Time for which an answer is valid: `REACHABLE_TIME` of RFC 4861, section 10.
const REACHABLE: Duration = Duration::from_secs(30);
/// Time to wait for TCP's confirmation: `DELAY_FIRST_PROBE_TIME` of RFC 4861, section 10.
const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);
/// The time for which an entry is kept that is neither used nor confirmed by a message.
const UNUSED: Duration = Duration::from_secs(600);
/// Time for which no request is sent to a neighbour that did not answer.
const FORGET_FAILURE: Duration = Duration::from_secs(1);
const LEAST_IP: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

#[cfg(test)]
mod tests;
