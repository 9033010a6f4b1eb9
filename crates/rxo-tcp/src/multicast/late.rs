//! The limit for the time that late receivers may add to a multicast.
//!
//! Separate from `slow.rs`, which limits one receiver at a time: a sequence of late receivers, each within its
//! own limit, could delay a group without end. One clock measures the time for all late receivers together. The
//! clock runs while the group waits only for late receivers, and while only late receivers are left.

use rxo_frame::{Duration, Instant};

use super::tree::{MemberMinimum, Tree};
use super::{Group, Late, MemberId, Outcome, Refusal};

/// The receivers that joined after the first byte, and their shared time limit.
#[derive(Debug, Default)]
pub(super) struct Latecomers {
    /// The number of late receivers that are members now.
    present: usize,
    /// The send limits and acknowledged positions of all receivers that did not join late; `None` until the
    /// first receiver joins late.
    others: Option<Tree>,
    /// The total time that the clock of late receivers had run before its last start (`runs_since`).
    used: Duration,
    runs_since: Option<Instant>,
}

impl Latecomers {
    /// Records the send limit and acknowledged position of a receiver, unless `is_late` is `true`.
    #[inline]
    pub(super) fn set(&mut self, id: MemberId, is_late: bool, value: MemberMinimum) {
        if let Some(others) = self.others.as_mut().filter(|_| !is_late) {
            others.set(id as usize, value);
        }
    }

    fn used(&self, now: Instant) -> Duration {
        self.used + self.runs_since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

impl Group {
    /// Returns the reason why a receiver that asks to join now is refused as too late; `None` if the receiver may join.
    pub(super) fn lateness(&self) -> Option<Refusal> {
        match self.config.late {
            _ if self.nxt == 0 => None,
            Late::Refuse => Some(Refusal::Late),
            Late::CatchUp | Late::FromNow => {
                let is_over = self.config.late_time.is_some_and(|most| self.late.used >= most);
                is_over.then_some(Refusal::LateTimeOver)
            }
        }
    }

    /// Counts a member that joins late. The first call costs O(n).
    pub(super) fn count_latecomer(&mut self) {
        self.late.present += 1;
        if self.late.others.is_none() {
            let mut others = Tree::new(self.config.most_receivers);
            for id in (0..self.members.len()).filter(|id| self.is_in_time(*id)) {
                others.set(id, self.tree.get(id));
            }
            self.late.others = Some(others);
        }
    }

    /// Reduces the count of late members by one, because a late member has ended.
    pub(super) fn forget_latecomer(&mut self) {
        self.late.present -= 1;
    }

    /// Sets the send limit and acknowledged position of a member.
    pub(super) fn set_least(&mut self, id: MemberId, value: MemberMinimum) {
        self.tree.set(id as usize, value);
        let is_late = !self.is_in_time(id as usize);
        self.late.set(id, is_late, value);
    }

    fn is_in_time(&self, id: usize) -> bool {
        self.members.get(id).is_some_and(|it| it.as_ref().is_some_and(|it| !it.is_late))
    }

    /// Starts or stops the clock of late receivers. `waits` is `true` if data waits for receivers.
    #[inline]
    pub(super) fn run_late_clock(&mut self, waits: bool, now: Instant) {
        if self.late.others.is_some() {
            self.set_late_clock(waits, now);
        }
    }

    fn set_late_clock(&mut self, waits: bool, now: Instant) {
        let Some(most) = self.config.late_time else { return };
        let runs = self.late.present > 0 && self.is_for_latecomers(waits);
        if runs && self.late.runs_since.is_none() {
            self.late.runs_since = Some(now);
            self.slow_check.schedule_check(now + most.saturating_sub(self.late.used));
        } else if !runs {
            self.late.used = self.late.used(now);
            self.late.runs_since = None;
        }
    }

    /// Returns `true` if only late receivers are left, or only they delay the group.
    fn is_for_latecomers(&self, waits: bool) -> bool {
        if self.receivers() == self.late.present {
            return true;
        }
        let Some(others) = self.late.others.as_ref().map(Tree::least).filter(|_| waits) else {
            return false;
        };
        if self.has_sent_all() {
            others.una >= self.nxt
        } else {
            others.limit >= self.nxt + u64::from(self.mss)
        }
    }

    /// Ejects all late receivers if their shared time is used up.
    pub(super) fn end_late_time(&mut self, now: Instant) {
        let (Some(most), Some(_)) = (self.config.late_time, self.late.runs_since) else { return };
        let used = self.late.used(now);
        if used < most {
            return self.slow_check.schedule_check(now + most.saturating_sub(used));
        }
        (self.late.used, self.late.runs_since) = (used, Some(now));
        for id in 0..self.members.len() {
            if self.members[id].as_ref().is_some_and(|member| member.is_late) {
                self.eject(id as MemberId, Outcome::LateTimeOver(most));
            }
        }
    }
}
