//! Releases a group from receivers that do not answer: a stopped host, or one whose network has failed.
//!
//! Separate from `slow.rs`, which ejects receivers: here a receiver stays a member, and only the group stops
//! waiting for it. The receiver's own connection retransmits lost data, and the receiver catches up when it
//! answers again. If it does not answer, `slow.rs` ejects it.

use alloc::vec::Vec;

use rxo_frame::{Duration, Instant};

use super::member::Member;
use super::tree::MemberMinimum;
use super::{Group, MemberId};
use crate::Connection;

impl Group {
    /// Schedules a check for silent members. Called when data waits for members or for the window.
    pub(super) fn expect_silence(&mut self, now: Instant) {
        if self.controller.is_some() {
            self.silence_check.get_or_insert(now + CHECK_EVERY);
        }
    }

    /// Releases the group from members that delay it and are silent. Does nothing if more than half of all
    /// members are silent: the cause is then probably this host or its link. Costs O(n), but only if the
    /// slowest member could be silent.
    pub(super) fn release_from_silent(&mut self, now: Instant) {
        let waits = self.blocked_since().is_some() || self.is_buffer_full();
        if self.controller.is_none() || !waits || self.has_sent_all() {
            return;
        }
        self.expect_silence(now);
        let least = self.tree.least();
        // Without members that the group waits for, nobody delays it.
        if least == MemberMinimum::NONE || now < self.sends.when(least.una + 1) + LEADER_QUIET {
            return;
        }
        let led = self.members.iter().flatten().filter(|member| member.is_led);
        let quiet = led.clone().filter(|it| self.is_silent(it, LEADER_QUIET, now)).count();
        let mut unas: Vec<u64> = led.map(|member| member.una).collect();
        let all = unas.len();
        if quiet == 0 || 2 * quiet > all || all == 1 {
            return;
        }
        let half_have = *unas.select_nth_unstable(all / 2).1;
        let mut gone = self.members.iter().flatten().filter(|member| member.has_left()).count();
        for id in 0..self.members.len() as MemberId {
            let is_few = gone == 0 || 8 * gone < all;
            if self.is_left_behind(id, half_have, is_few, now) {
                gone += usize::from(!self.is_leader(id));
                self.stop_waiting_for(id);
            }
        }
    }

    /// Returns `true` if a member delays the group, is silent, and has received less than half of the
    /// outstanding data, while half of all members have acknowledged half of it (`half_have`). Otherwise the
    /// member waits for a repair, or the data waits in a queue of this sender. A leader acknowledges every
    /// segment at once, so only a short silence is permitted to it. Other members may be silent for longer, and
    /// longest unless `is_few`, which means that few members catch up: sending data again to many members takes
    /// longer than waiting for them.
    fn is_left_behind(&self, id: MemberId, half_have: u64, is_few: bool, now: Instant) -> bool {
        let Some(Some(member)) = self.members.get(id as usize) else { return false };
        let lacks = self.nxt.saturating_sub(member.una);
        let limit = match self.is_leader(id) {
            true => LEADER_QUIET,
            false if is_few && lacks >= u64::from(HIDDEN_SEGMENTS * self.mss) => {
                member.silence_limit
            }
            false => SILENT_AFTER,
        };
        let half = self.nxt - lacks / 2;
        self.is_silent(member, limit, now)
            && member.path.delivered.max(member.una) <= half
            && half <= half_have
            && (self.is_blocking(id) || self.holds_buffer(id))
            && self.has_open_window(id)
    }

    /// Replaces the leader if the member is the leader. Otherwise marks the member to leave the group, so that
    /// its window no longer limits the group.
    fn stop_waiting_for(&mut self, id: MemberId) {
        if self.is_leader(id) {
            self.replace_leader();
        } else {
            self.release_from(id);
        }
    }

    /// Returns `true` if no segment of a member has arrived for `time` (at least half a round trip), and the
    /// ACK of its oldest outstanding segment is overdue by this time. The ACK is due
    /// one and a quarter round trips after the send.
    fn is_silent(&self, member: &Member, time: Duration, now: Instant) -> bool {
        let time = time.max(Duration::from_nanos(member.round_trip_ns / 2));
        let last_arrival_at = member.progress.1.max(member.path.last_arrival_at);
        let due_at = self.sends.when(member.una + 1).plus_nanos(member.round_trip_ns / 4 * 5);
        member.is_led
            && !member.leaves
            && member.una < self.nxt
            && now >= last_arrival_at.max(due_at) + time
    }

    /// Returns `true` if the group's buffer has no space for data that could be sent.
    pub(super) fn is_buffer_full(&self) -> bool {
        self.text.length().is_none() && self.text.room() < self.mss
    }

    fn holds_buffer(&self, id: MemberId) -> bool {
        self.is_buffer_full() && self.tree.get(id as usize).una == self.tree.least().una
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

    /// Lets a silent member leave the group: its connection sends the missing data by itself.
    pub(super) fn leave<B: AsRef<[u8]>>(&mut self, id: MemberId, connection: &mut Connection<B>) {
        connection.leave_group();
        let Some(Some(member)) = self.members.get_mut(id as usize) else { return };
        (member.leaves, member.is_led, member.left_at) = (false, false, Some(member.una));
        self.set_least(id, MemberMinimum::NONE);
        self.end_lead(id);
    }
}

impl Member {
    /// Returns `true` if the member has left the group because it was silent, and has not returned.
    fn has_left(&self) -> bool {
        self.leaves || !self.is_led && self.left_at.is_some()
    }

    /// Doubles the silence that is permitted to a member that has returned, because its ACK was only late.
    pub(super) fn double_silence_limit(&mut self) {
        if self.left_at.is_some() {
            self.silence_limit = (self.silence_limit * 2).min(SILENT_AFTER);
        }
    }
}

/// The silence after which a leader is replaced. A leader acknowledges each segment at once.
const LEADER_QUIET: Duration = Duration::from_millis(5);
/// The silence that is allowed to a member at first: twice the longest delay of an ACK
/// (`rxo cast receive`).
pub(super) const FIRST_SILENCE_LIMIT: Duration = Duration::from_millis(10);
/// A member acknowledges at least one in this number of segments, even if an ACK is lost.
const HIDDEN_SEGMENTS: u32 = 32;
/// The longest silence that is allowed to a member. A process on a busy machine often waits 50 ms for the
/// processor.
const SILENT_AFTER: Duration = Duration::from_millis(100);
/// The time between two checks while data waits.
const CHECK_EVERY: Duration = Duration::from_millis(2);
