//! Who has which link-layer address: the states of RFC 4861, section 7.3.2, for ARP as well.
//!
//! Separate because it knows addresses and time, but no packets: it says whom to ask, and is told what
//! was heard. The number of entries is bounded, and who floods the link with names fills only what
//! nobody uses:
//!
//! * an entry that this host never asked for gives way first, the oldest before the others;
//! * then one that nobody has answered for; those may never be more than half;
//! * then one that has not been used for a minute. One in use stays, and the newcomer is refused.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rxo_frame::{Duration, Instant};

/// A link-layer address.
pub(super) type Mac = [u8; 6];

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    entries: BTreeMap<IpAddr, Neighbour>,
    limit: usize,
    /// Nothing is due before.
    next_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    mac: Mac,
    state: State,
    /// When the state ends by itself.
    until: Instant,
    /// When this host last sent something to it; `None` is never.
    used_at: Option<Instant>,
    /// When it was last heard of.
    heard_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Everybody was asked; nobody has answered.
    Incomplete { asked: u8 },
    /// It has answered lately.
    Reachable,
    /// It has not, and nothing was sent to it since.
    Stale,
    /// It has not, and something was sent to it: perhaps what comes back shows that it is there.
    Delay,
    /// It alone was asked.
    Probe { asked: u8 },
    /// Nobody has answered; nobody is asked again for a while.
    Failed,
}

/// What [`Neighbours::resolve`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Mac(Mac),
    /// It has been asked for.
    Pending,
    /// It is to be asked for now.
    Ask,
    /// Nobody has answered.
    Failed,
    /// All entries are in use.
    Full,
}

/// Somebody to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) ip: IpAddr,
    /// It alone; `None` is everybody.
    pub(super) mac: Option<Mac>,
}

/// What was heard of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) ip: IpAddr,
    /// Its address; `None` when that was not said.
    pub(super) mac: Option<Mac>,
    /// It answers what this host asked.
    pub(super) is_answer: bool,
    /// An address that differs replaces one that is known.
    pub(super) overrides: bool,
    /// It spoke to this host, so that an answer is likely to be sent to it.
    pub(super) is_for_us: bool,
}

impl Neighbours {
    pub(super) fn with_limit(limit: usize) -> Self {
        Self { entries: BTreeMap::new(), limit, next_at: None }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// When [`Neighbours::on_timeout`] may have something to do.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Something is to be sent to `ip`.
    pub(super) fn resolve(&mut self, ip: IpAddr, now: Instant) -> Known {
        let Some(entry) = self.entries.get_mut(&ip) else { return self.begin(ip, now) };
        entry.used_at = Some(now);
        match entry.state {
            State::Incomplete { .. } => return Known::Pending,
            State::Failed => return Known::Failed,
            State::Stale => {
                (entry.state, entry.until) = (State::Delay, now + DELAY_FIRST_PROBE);
            }
            State::Reachable | State::Delay | State::Probe { .. } => {}
        }
        let (mac, until) = (entry.mac, entry.until);
        self.wake(until);
        Known::Mac(mac)
    }

    fn begin(&mut self, ip: IpAddr, now: Instant) -> Known {
        if !self.make_room(true, now) {
            return Known::Full;
        }
        let state = State::Incomplete { asked: 1 };
        let until = now + RETRANSMIT;
        let used_at = Some(now);
        self.insert(ip, Neighbour { mac: [0; 6], state, until, used_at, heard_at: now });
        Known::Ask
    }

    /// What was sent to `ip` has arrived, as the transport knows (RFC 4861, section 7.3.1).
    pub(super) fn confirm(&mut self, ip: IpAddr, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&ip).filter(|entry| entry.has_mac()) {
            (entry.state, entry.until) = (State::Reachable, now + REACHABLE);
            entry.heard_at = now;
        }
    }

    /// Takes what was heard; says whether packets may leave now that had to wait (RFC 4861, section
    /// 7.2.5; RFC 826).
    pub(super) fn hear(&mut self, heard: &Heard, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(&heard.ip) else {
            self.learn(heard, now);
            return false;
        };
        let had_mac = entry.has_mac();
        entry.hear(heard, now);
        let (is_news, until) = (entry.has_mac() && !had_mac, entry.until);
        self.wake(until);
        is_news
    }

    /// A neighbour that this host did not ask for.
    fn learn(&mut self, heard: &Heard, now: Instant) {
        let Some(mac) = heard.mac.filter(|_| heard.is_for_us && !heard.is_answer) else { return };
        if self.make_room(false, now) {
            let until = now + UNUSED;
            let state = State::Stale;
            self.insert(heard.ip, Neighbour { mac, state, until, used_at: None, heard_at: now });
        }
    }

    /// Does what is due; shows each that is to be asked.
    pub(super) fn on_timeout(&mut self, now: Instant, mut ask: impl FnMut(Ask)) {
        if self.next_at.is_none_or(|at| at > now) {
            return;
        }
        self.entries.retain(|ip, entry| {
            if entry.until > now {
                return true;
            }
            let is_kept = entry.expire(now);
            if let Some(mac) = entry.asks().filter(|_| is_kept) {
                ask(Ask { ip: *ip, mac });
            }
            is_kept
        });
        self.next_at = self.entries.values().map(|entry| entry.until).min();
    }

    fn insert(&mut self, ip: IpAddr, entry: Neighbour) {
        self.entries.insert(ip, entry);
        self.wake(entry.until);
    }

    fn wake(&mut self, until: Instant) {
        self.next_at = Some(self.next_at.map_or(until, |at| at.min(until)));
    }

    /// Whether there is a place for another, after the one that matters least has gone.
    fn make_room(&mut self, is_wanted: bool, now: Instant) -> bool {
        let waiting = self.entries.values().filter(|entry| !entry.has_mac()).count();
        let has_too_many = is_wanted && waiting >= self.limit.div_ceil(2);
        if self.entries.len() < self.limit && !has_too_many {
            return true;
        }
        let ranked = self.entries.iter().map(|(ip, entry)| (entry.rank(now), entry.heard_at, *ip));
        let least = if has_too_many {
            ranked.filter(|(rank, ..)| *rank == Rank::Unanswered).min()
        } else {
            ranked.min()
        };
        let most = if is_wanted { Rank::Idle } else { Rank::Unwanted };
        let Some((_, _, ip)) = least.filter(|(rank, ..)| *rank <= most) else { return false };
        self.entries.remove(&ip);
        true
    }
}

/// What an entry is worth; the first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Unwanted,
    Unanswered,
    Idle,
    InUse,
}

impl Neighbour {
    fn has_mac(&self) -> bool {
        !matches!(self.state, State::Incomplete { .. } | State::Failed)
    }

    fn rank(&self, now: Instant) -> Rank {
        match self.used_at {
            _ if !self.has_mac() => Rank::Unanswered,
            None => Rank::Unwanted,
            Some(used_at) if now.since(used_at) >= IN_USE => Rank::Idle,
            Some(_) => Rank::InUse,
        }
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

    /// The state has ended; `false` when the entry is not needed any more.
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

    /// Whom the state asks.
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
/// The same: `MAX_MULTICAST_SOLICIT` and `MAX_UNICAST_SOLICIT`.
const MOST_ASKED: u8 = 3;
/// The same: `REACHABLE_TIME`.
const REACHABLE: Duration = Duration::from_secs(30);
/// The same: `DELAY_FIRST_PROBE_TIME`.
const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);
/// How long an entry is kept that nobody uses and that is not heard of.
const UNUSED: Duration = Duration::from_secs(600);
/// How long nobody is asked again for a neighbour that did not answer.
const FORGET_FAILURE: Duration = Duration::from_secs(1);
/// An entry that was used so lately gives way to nobody.
const IN_USE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
