//! Poll rules: assumptions about the times at which a host polls for packets.
//!
//! A capture contains the arrival times of packets, but not the times at which the host polled for them. A
//! [`PollRule`] is the user's assumption about these times. [`Polls`] applies the rule, as a pure function of
//! the arrivals. This module is separate from the engine, so that it can be tested as a table, and shared by
//! several engines.

use core::fmt;
use core::str::FromStr;

use rxo_frame::{Duration, Instant};
use thiserror::Error;

use super::time::{parse_time, show_time};

/// The maximum number of packets that a host processes in one poll: the weight of NAPI.
pub const HOST_BUDGET: u32 = 64;
/// The maximum number of packets that wait for a poll: the capacity of a large receive ring.
pub const RING_PACKETS: u32 = 4_096;

const MAX_PACKETS: u32 = 32_768;
const MAX_TIME: Duration = Duration::from_secs(1);

/// A poll rule: the assumption about the times at which a host polls for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollRule {
    /// `packets:64`: a poll for every 64 packets (or another number), without a time limit. These are the
    /// largest polls that a budget of this number permits, as on a host that is always busy.
    Packets(u32),
    /// `time:50us`: a poll takes place this time after its first packet, like with a card's `rx-usecs`; the
    /// poll takes place earlier if [`RING_PACKETS`] packets wait.
    Time(Duration),
    /// `host:1us`: simulates a host that is busy for this time with each packet. When it has finished, it polls
    /// all packets that have arrived meanwhile, at most [`HOST_BUDGET`]. An idle host polls each packet at
    /// once.
    Host(Duration),
}

/// The error for a string that is not a poll rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a poll rule is {}", Self::ACCEPTED)]
pub struct BadPollRule;

impl BadPollRule {
    /// The accepted forms of poll rules, for error messages.
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
    /// Returns the longest time from the arrival of a packet until its poll has ended and the host is idle, for any
    /// earlier packets; `None` if there is no limit.
    #[must_use]
    pub const fn reach(self) -> Option<Duration> {
        match self {
            Self::Packets(_) => None,
            Self::Time(time) => Some(time),
            // At worst the ring is full, and the host still works on a budget of packets.
            Self::Host(cost) => Some(cost.saturating_mul(RING_PACKETS + HOST_BUDGET)),
        }
    }

    /// Returns the maximum number of packets in one poll under this rule.
    #[must_use]
    pub const fn most_packets(self) -> u32 {
        match self {
            Self::Packets(count) => count,
            Self::Time(_) => RING_PACKETS,
            Self::Host(_) => HOST_BUDGET,
        }
    }
}

/// A poll, in which the host removes a number of the waiting packets from the queue, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The number of packets in the poll, at least 1.
    pub packets: u32,
    /// The time at which the poll takes place.
    pub at: Instant,
}

/// Applies a [`PollRule`] to arrivals, whose times must not go back.
///
/// For each packet, call [`Polls::before`] until it returns `None`, then [`Polls::after`]. At the
/// end, call [`Polls::rest`] until it returns `None`.
#[derive(Clone, Debug)]
pub struct Polls {
    rule: PollRule,
    waiting: u32,
    /// The arrival time of the first waiting packet.
    first: Instant,
    /// The arrival time of the last packet.
    last: Instant,
    /// The time at which the host has finished processing the packets of the last poll.
    free_at: Instant,
    overruns: u64,
}

impl Polls {
    /// Creates the state with no waiting packets and an idle host.
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

    /// Returns the number of packets that wait for a poll.
    #[must_use]
    pub const fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Returns the number of polls that began early because [`RING_PACKETS`] packets waited. A real ring would
    /// have lost packets.
    #[must_use]
    pub const fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Returns the next poll that takes place before a packet that arrives at `at`; `None` if there is no such
    /// poll.
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
            // A packet that arrives when the host becomes free is taken too.
            PollRule::Host(cost) => (self.free_at < at).then(|| self.take_as_host(cost)),
        }
    }

    /// Adds a packet that arrives at `at`. Returns the poll that the packet completes; `None` if the packet
    /// completes no poll.
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

    /// Makes the host idle, because the next packets belong to another capture, whose timestamps are unrelated.
    /// No packet may be waiting.
    pub(super) const fn rejoin(&mut self) {
        self.free_at = Instant::ZERO;
    }

    /// Returns the next poll if no more packets arrive; `None` if no packets wait.
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
