//! Releases a group from receivers that do not answer: a stopped host, or one whose network has failed.
//!
//! Separate from `slow.rs`, which ejects receivers: here a receiver stays a member, and only the group stops
//! waiting for it. The receiver's own connection retransmits lost text, and the receiver catches up when it
//! answers again. If it does not answer, `slow.rs` ejects it.

use rxo_frame::{Duration, Instant};

use super::member::Member;
use super::tree::MemberMinimum;
use super::{Group, MemberId};
use crate::Connection;

impl Group {
    /// Releases the group from members that delay it and are silent. Does nothing if more than half of all
    /// members are silent: then the fault is here, or between this host and all members. A silent leader is
    /// replaced before its retransmission timer expires, because the acknowledgements of other members show
    /// that the group's segments arrive.
    pub(super) fn release_from_silent(&mut self, now: Instant) {
        let waits = self.blocked_since().is_some() || self.is_buffer_full();
        if self.controller.is_none() || !waits || self.has_sent_all() {
            return;
        }
        let is_quiet = |member: &&Member| member.is_silent(QUIET_AFTER, self.nxt, now);
        let led = self.members.iter().flatten().filter(|member| member.is_led);
        let (all, quiet) = (led.clone().count(), led.filter(is_quiet).count());
        // If half of the members have received everything, the missing text does not wait in a queue of this
        // sender.
        let whole = self.members.iter().flatten().filter(|it| it.is_led && it.una == self.nxt);
        if quiet == 0 || 2 * quiet > all || all == 1 || 2 * whole.count() < all {
            return;
        }
        for id in 0..self.members.len() as MemberId {
            if !self.is_blocking(id) && !self.holds_buffer(id) {
                continue;
            }
            if self.is_silent(id, SILENT_AFTER, now)
                && self.has_open_window(id)
                && self.lacks_most(id)
            {
                self.release_from(id);
            } else if self.is_leader(id) && self.is_silent(id, QUIET_AFTER, now) {
                self.replace_leader();
            }
        }
    }

    /// Returns `true` if the group's buffer has no space for text that could be sent.
    pub(super) fn is_buffer_full(&self) -> bool {
        self.text.length().is_none() && self.text.room() < self.mss
    }

    fn holds_buffer(&self, id: MemberId) -> bool {
        self.is_buffer_full() && self.tree.get(id as usize).una == self.tree.least().una
    }

    fn is_silent(&self, id: MemberId, time: Duration, now: Instant) -> bool {
        let member = self.members.get(id as usize).and_then(Option::as_ref);
        member.is_some_and(|member| member.is_silent(time, self.nxt, now))
    }

    /// Returns `true` if a member lacks at least half of the outstanding text. A member that lacks less is
    /// waiting for a repair.
    fn lacks_most(&self, id: MemberId) -> bool {
        let member = self.members.get(id as usize).and_then(Option::as_ref);
        member.is_some_and(|member| {
            let lacks = self.nxt.saturating_sub(member.path.delivered.max(member.una));
            2 * lacks >= self.nxt - member.una.min(self.nxt)
        })
    }

    /// Returns `true` if a member's window is open. A receiver with a closed window answers probes, so it is
    /// not silent.
    fn has_open_window(&self, id: MemberId) -> bool {
        let its = self.tree.get(id as usize);
        its != MemberMinimum::NONE && its.limit.saturating_sub(its.una) >= u64::from(self.mss)
    }

    #[inline]
    pub(super) fn leaves(&self, id: MemberId) -> bool {
        self.members.get(id as usize).is_some_and(|it| it.as_ref().is_some_and(|it| it.leaves))
    }

    fn release_from(&mut self, id: MemberId) {
        let Some(Some(member)) = self.members.get_mut(id as usize) else { return };
        member.leaves = true;
        if member.is_dormant() {
            member.sleep = super::acks::Sleep::Wakes;
        }
        self.touched.push_back(id);
    }

    /// Lets a silent member leave the group: its connection sends the missing text by itself.
    pub(super) fn leave<B: AsRef<[u8]>>(&mut self, id: MemberId, connection: &mut Connection<B>) {
        connection.leave_group();
        let Some(Some(member)) = self.members.get_mut(id as usize) else { return };
        (member.leaves, member.is_led, member.left_at) = (false, false, Some(member.una));
        self.set_least(id, MemberMinimum::NONE);
        self.end_lead(id);
    }
}

impl Member {
    /// Returns `true` if text is outstanding and no segment of the receiver has arrived for `time`, and for
    /// one and a quarter round trips: after one round trip, all text in flight would have been acknowledged.
    fn is_silent(&self, time: Duration, nxt: u64, now: Instant) -> bool {
        let time = Duration::from_nanos(self.round_trip_ns / 4 * 5).max(time);
        let heard_at = self.progress.1.max(self.path.heard_at);
        self.is_led && !self.leaves && self.una < nxt && now >= heard_at + time
    }
}

/// The shortest silence after which a leader is replaced: twice the longest delay of an
/// acknowledgement (`rxo cast receive`).
const QUIET_AFTER: Duration = Duration::from_millis(10);
/// The shortest time without a segment after which a receiver counts as silent. A process on a busy machine
/// often waits 50 ms for the processor, and catching up sends the receiver's text twice.
const SILENT_AFTER: Duration = Duration::from_millis(100);
