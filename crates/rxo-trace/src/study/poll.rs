//! When a poll ends.
//!
//! A capture says when packets came, not when the host looked for them. A [`PollRule`] is the
//! assumption about that, as the user types it; [`Polls`] applies it, as a pure function of the
//! arrivals. Apart from the engine so that it can be tested as a table, and so that several
//! engines share one rule.

use core::fmt;
use core::str::FromStr;

use rxo_frame::{Duration, Instant};

use super::time::{parse_time, show_time};

/// What a host takes in one poll at most: NAPI's weight.
pub const HOST_BUDGET: u32 = 64;
/// The most packets that wait for a poll: a large receive ring.
pub const RING_PACKETS: u32 = 4_096;

const MAX_PACKETS: u32 = 32_768;
const MAX_TIME: Duration = Duration::from_secs(1);

/// When the host polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollRule {
    /// Every so many packets, however long that takes: `packets:64`. The largest polls that a
    /// budget allows, as on a host that is always busy.
    Packets(u32),
    /// So long after the first packet of the poll came: `time:50us`, a card's `rx-usecs`. Early
    /// when [`RING_PACKETS`] wait.
    Time(Duration),
    /// Simulated from the arrivals: the host is busy for so long with each packet, and then takes
    /// all that came meanwhile, at most [`HOST_BUDGET`]; an idle host takes each at once:
    /// `host:1us`.
    Host(Duration),
}

/// Not a rule for polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPollRule;

impl BadPollRule {
    /// What would be accepted, for an error line.
    pub const ACCEPTED: &'static str =
        "packets:N (1 to 32768), time:T or host:T (1ns to 1s, such as 50us)";
}

impl FromStr for PollRule {
    type Err = BadPollRule;

    fn from_str(text: &str) -> Result<Self, BadPollRule> {
        let (kind, value) = text.split_once(':').ok_or(BadPollRule)?;
        let time = || parse_time(value).filter(|time| !time.is_zero() && *time <= MAX_TIME);
        match kind {
            "packets" => {
                let count = value.parse().ok().filter(|count| (1..=MAX_PACKETS).contains(count));
                count.map(Self::Packets)
            }
            "time" => time().map(Self::Time),
            "host" => time().map(Self::Host),
            _ => None,
        }
        .ok_or(BadPollRule)
    }
}

impl fmt::Display for PollRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(count) => write!(f, "packets:{count}"),
            Self::Time(time) => write!(f, "time:{}", show_time(*time)),
            Self::Host(cost) => write!(f, "host:{}", show_time(*cost)),
        }
    }
}

impl PollRule {
    /// The most packets of one poll.
    #[must_use]
    pub const fn most_packets(self) -> u32 {
        match self {
            Self::Packets(count) => count,
            Self::Time(_) => RING_PACKETS,
            Self::Host(_) => HOST_BUDGET,
        }
    }
}

/// One poll: the host takes the first so many of the packets that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// How many, 1 or more.
    pub packets: u32,
    /// When it takes them.
    pub at: Instant,
}

/// Applies a [`PollRule`] to arrivals, which must not go back in time.
///
/// For each packet: [`Polls::before`] until it gives nothing, then [`Polls::after`]. At the end
/// [`Polls::rest`] until it gives nothing.
#[derive(Clone, Debug)]
pub struct Polls {
    rule: PollRule,
    waiting: u32,
    /// When the first packet that waits came.
    first: Instant,
    /// When the last packet came.
    last: Instant,
    /// When the host has done what it took.
    free_at: Instant,
    overruns: u64,
}

impl Polls {
    /// Nothing waits, the host is idle.
    #[must_use]
    pub const fn new(rule: PollRule) -> Self {
        Self {
            rule,
            waiting: 0,
            first: Instant::ZERO,
            last: Instant::ZERO,
            free_at: Instant::ZERO,
            overruns: 0,
        }
    }

    /// How many packets wait.
    #[must_use]
    pub const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Polls that came early because [`RING_PACKETS`] waited: a real ring would have lost packets.
    #[must_use]
    pub const fn overruns(&self) -> u64 {
        self.overruns
    }

    /// The next poll that takes place before a packet that comes at `at`, if there is one.
    #[inline]
    pub fn before(&mut self, at: Instant) -> Option<Poll> {
        if self.waiting == 0 {
            return None;
        }
        match self.rule {
            PollRule::Packets(_) => None,
            PollRule::Time(time) => {
                let end = self.first + time;
                (at >= end).then(|| self.take_all(end))
            }
            // What comes in the instant at which the host is free is taken too.
            PollRule::Host(cost) => (self.free_at < at).then(|| self.take_as_host(cost)),
        }
    }

    /// A packet comes at `at`. Returns the poll that ends with it, if one does.
    #[inline]
    pub fn after(&mut self, at: Instant) -> Option<Poll> {
        if self.waiting == 0 {
            self.first = at;
        }
        self.waiting += 1;
        self.last = at;
        match self.rule {
            PollRule::Packets(count) => (self.waiting >= count).then(|| self.take_all(at)),
            PollRule::Host(cost) if self.waiting == 1 && self.free_at <= at => {
                self.free_at = at;
                Some(self.take_as_host(cost))
            }
            PollRule::Time(_) if self.waiting >= RING_PACKETS => {
                self.overruns += 1;
                Some(self.take_all(at))
            }
            PollRule::Host(cost) if self.waiting >= RING_PACKETS => {
                self.overruns += 1;
                self.free_at = at;
                Some(self.take_as_host(cost))
            }
            PollRule::Time(_) | PollRule::Host(_) => None,
        }
    }

    /// The next poll when no more packets come.
    pub fn rest(&mut self) -> Option<Poll> {
        if self.waiting == 0 {
            return None;
        }
        Some(match self.rule {
            PollRule::Packets(_) => self.take_all(self.last),
            PollRule::Time(time) => self.take_all(self.first + time),
            PollRule::Host(cost) => self.take_as_host(cost),
        })
    }

    #[inline]
    fn take_all(&mut self, at: Instant) -> Poll {
        Poll { packets: core::mem::take(&mut self.waiting), at }
    }

    fn take_as_host(&mut self, cost: Duration) -> Poll {
        let packets = self.waiting.min(HOST_BUDGET);
        let poll = Poll { packets, at: self.free_at };
        self.waiting -= packets;
        self.free_at = self.free_at + cost.saturating_mul(packets);
        poll
    }
}

#[cfg(test)]
mod tests;
