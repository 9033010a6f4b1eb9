//! Detects receivers that delay the others for too long. RFC 9293 permits a peer to keep its window closed
//! without end, but a group limits this time.

use rxo_frame::{Duration, Instant};

use super::member::CONFIRMS_WITHIN;
use super::tree::MemberMinimum;
use super::{Group, MemberId, Outcome, Slow};

/// The times that are needed to detect slow receivers.
#[derive(Debug, Default)]
pub(super) struct SlowCheck {
    /// The time since which data has waited for receivers that accept less than a segment; `None` if no data waits.
    blocked_since: Option<Instant>,
    due: Option<Instant>,
    /// The start of the measurement for [`Slow::EjectBelow`], and the position that
    /// all receivers had reached at that time; `None` before the first measurement.
    pace: Option<(Instant, u64)>,
}

impl SlowCheck {
    /// Returns the time of the next check for slow receivers; `None` if no receiver can be slow.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        self.due.take_if(|at| *at <= now).is_some()
    }

    /// Restarts the measurement for [`Slow::EjectBelow`].
    pub(super) fn forget_pace(&mut self) {
        self.pace = None;
    }

    /// Schedules a check at `at` or earlier.
    pub(super) fn schedule_check(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

impl Group {
    /// Records that data waits for receivers.
    pub(super) fn wait_for(&mut self, now: Instant) {
        if let Some(time) = self.config.slow.time()
            && self.slow_check.due.is_none()
        {
            self.slow_check.due = Some(now + time);
        }
        self.slow_check.blocked_since.get_or_insert(now);
        self.slow_check.pace.get_or_insert((now, self.tree.least().una));
    }

    /// Returns the time since which data has waited for receivers; `None` if no data waits.
    pub(super) fn blocked_since(&self) -> Option<Instant> {
        self.slow_check.blocked_since
    }

    /// Records that no data waits for receivers.
    pub(super) fn wait_no_more(&mut self) {
        self.slow_check.blocked_since = None;
    }

    /// Ejects the members that have delayed the others for too long.
    pub(super) fn eject_slow(&mut self, now: Instant) {
        self.keep_pace(now);
        for id in 0..self.members.len() as MemberId {
            let Some((since, outcome)) = self.waits_since(id) else { continue };
            let limit = match outcome {
                Outcome::Ejected(time) | Outcome::Unconfirmed(time) => time,
                Outcome::Done
                | Outcome::Failed(_)
                | Outcome::TooSlow(..)
                | Outcome::LateTimeOver(_) => continue,
            };
            if now.since(since) >= limit {
                self.eject(id, outcome);
            } else {
                self.slow_check.schedule_check(since + limit);
            }
        }
    }

    /// Ejects the slowest member if, in the interval, the position that all members have reached advanced by
    /// less than the required number of bytes. Schedules the next check.
    fn keep_pace(&mut self, now: Instant) {
        let Slow::EjectBelow { time, bytes } = self.config.slow else { return };
        let Some((since, una)) = self.slow_check.pace else { return };
        if now < since + time {
            return self.slow_check.schedule_check(since + time);
        }
        let least = self.tree.least();
        self.slow_check.pace = Some((now, least.una));
        self.slow_check.schedule_check(now + time);
        if least.una.saturating_sub(una) < bytes {
            for id in 0..self.members.len() as MemberId {
                if self.is_blocking(id) && self.is_slowest(id, least) {
                    self.eject(id, Outcome::TooSlow(bytes, time));
                }
            }
        }
    }

    /// Returns `true` if no other member has a lower send limit or, once everything is sent, a lower
    /// acknowledged position.
    fn is_slowest(&self, id: MemberId, least: MemberMinimum) -> bool {
        let its = self.tree.get(id as usize);
        if self.has_sent_all() { its.una == least.una } else { its.limit == least.limit }
    }

    /// Returns the time since which a member has delayed the other members, and the outcome if it does not
    /// stop; `None` if it does not delay them.
    fn waits_since(&self, id: MemberId) -> Option<(Instant, Outcome)> {
        let member = self.members.get(id as usize)?.as_ref()?;
        if let Some(until) = member.confirm_by {
            let since = Instant::from_nanos(
                until.as_nanos().saturating_sub(CONFIRMS_WITHIN.as_nanos() as u64),
            );
            return Some((since, Outcome::Unconfirmed(CONFIRMS_WITHIN)));
        }
        let time = self.config.slow.time()?;
        let idle_since = member.idle_since()?;
        if !member.is_led {
            return self.is_started.then_some((idle_since, Outcome::Ejected(time)));
        }
        let blocked_since = self.slow_check.blocked_since?;
        self.is_blocking(id).then(|| (idle_since.max(blocked_since), Outcome::Ejected(time)))
    }

    /// Returns `true` if a member allows less than one more segment or, after the last segment, has not
    /// acknowledged everything.
    pub(super) fn is_blocking(&self, id: MemberId) -> bool {
        let least = self.tree.get(id as usize);
        if self.has_sent_all() {
            least.una < self.nxt
        } else {
            let limit = if self.is_leader(id) { self.controlled_limit() } else { u64::MAX };
            least.limit.min(limit) < self.nxt + u64::from(self.mss)
        }
    }
}

impl Slow {
    /// Returns the time after which a receiver that accepts less than one segment is ejected; `None` if it is
    /// never ejected.
    const fn time(self) -> Option<Duration> {
        match self {
            Self::Wait => None,
            Self::Eject(time) | Self::EjectBelow { time, .. } => Some(time),
        }
    }
}
