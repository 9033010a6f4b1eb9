//! One receiver of a group: its position, whether the group leads it, and its outcome.

use alloc::vec::Vec;
use rxo_frame::{Duration, Instant};

use super::acks::Sleep;
use super::control::{PathState, ReceiverReport};
use super::tree::MemberMinimum;
use super::{Group, GroupEvent, Outcome, Progress};
use crate::{Connection, Failure, State};

/// The number of a receiver while it is a member; later another receiver may get it.
pub type MemberId = u32;

/// The state of one receiver. Positions are offsets in the stream.
#[derive(Debug)]
pub(super) struct Member {
    /// The acknowledged stream position: the receiver has acknowledged everything before it.
    pub(super) una: u64,
    /// The stream position before which all data has been passed to the receiver's connection.
    pub(super) given: u64,
    /// The number of the first send that has not been reported to the receiver's connection.
    pub(super) send: u64,
    pub(super) sleep: Sleep,
    /// `true` if the group sends all new data to this receiver.
    pub(super) is_led: bool,
    /// `true` if the receiver is silent, and leaves the group at its connection's next event.
    pub(super) leaves: bool,
    /// The acknowledged position when the receiver last left the group because of its silence. The receiver
    /// returns to the group only when it has acknowledged more. `None` if it has not left.
    pub(super) left_at: Option<u64>,
    /// The length of a silence after which the group no longer waits for the receiver.
    pub(super) silence_limit: Duration,
    /// The receiver's part in the congestion control of the group.
    pub(super) path: PathState,
    /// `true` if the receiver joined after the first byte was sent.
    pub(super) is_late: bool,
    /// The payload size of a full segment to the receiver, in bytes.
    pub(super) mss: u32,
    /// `true` if the receiver's connection has been closed for sending.
    pub(super) is_shut: bool,
    /// `true` while the owner has not yet answered a request for earlier data.
    pub(super) has_asked: bool,
    pub(super) joined_at: Instant,
    pub(super) start: u64,
    /// The acknowledged position at the receiver's last progress, and the time of that progress.
    pub(super) progress: (u64, Instant),
    /// The smoothed round-trip time of the receiver's connection in nanoseconds, at the last update.
    pub(super) round_trip_ns: u64,
    /// `true` if the connection's retransmission timer had expired at the last update.
    pub(super) has_timed_out: bool,
    /// `true` if the connection was retransmitting after a timeout at the last update.
    pub(super) is_after_timeout: bool,
    /// The number of bytes that the receiver's connection has retransmitted.
    pub(super) repaired_bytes: u64,
    /// The time by which the receiver must confirm that it has received everything; `None` before it has
    /// acknowledged everything.
    pub(super) confirm_by: Option<Instant>,
    /// The reason why the receiver was ejected; `None` if the receiver was not ejected.
    pub(super) ejected: Option<Outcome>,
}

impl Member {
    /// Returns `true` if the receiver's connection lacks reports of sends before `next`.
    pub(super) fn is_behind(&self, next: u64) -> bool {
        self.is_led && !self.is_dormant() && self.send < next
    }

    /// Returns the time of the receiver's last progress. `None` if it is waiting for data that was requested
    /// from the owner, or was ejected.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (!self.has_asked && self.ejected.is_none()).then_some(self.progress.1)
    }
}

impl Group {
    /// Reports the sends of the group to a member's connection. Call this method before any other event of the
    /// connection: a segment, a timeout, or a poll for segments.
    #[inline]
    pub fn before<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &mut Connection<B>,
        now: Instant,
    ) {
        if self.is_dormant(id) {
            self.end_sleep(id);
        }
        let Some(Some(member)) = self.members.get(id as usize) else { return };
        if !member.is_led {
            connection.group_has_sent(self.seq(self.nxt.min(member.una + MOST_AHEAD)));
        }
        let is_behind = member.is_behind(self.sends.next());
        if member.given < self.text.end() || self.text.length().is_some() && !member.is_shut {
            self.send_available(id, connection);
        }
        if is_behind {
            self.report_sends(id, connection, now);
        }
        if self.leaves(id) {
            self.leave(id, connection);
        }
    }

    fn report_sends<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &mut Connection<B>,
        now: Instant,
    ) {
        let Self { members, sends, config, .. } = self;
        let Some(Some(member)) = members.get_mut(id as usize) else { return };
        let first = config.seed.iss + 1;
        let sent = sends.from(member.send).map(|(end, at)| (first + end as u32, at));
        connection.sent_by_group(sent, now);
        member.send = sends.next();
    }

    #[inline]
    fn is_dormant(&self, id: MemberId) -> bool {
        self.members.get(id as usize).is_some_and(|it| it.as_ref().is_some_and(Member::is_dormant))
    }

    /// Updates the group after an event of a member's connection. Costs O(log n), usually less.
    #[inline]
    pub fn after<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &mut Connection<B>,
        now: Instant,
    ) {
        let edge = connection.group_edge();
        let Some(Some(member)) = self.members.get(id as usize) else { return };
        let Some(una) = self.position(edge.una, member.una) else { return };
        let is_dormant = member.is_dormant();
        let has_answered = member.left_at.is_none_or(|at| una > at);
        let (is_led, has_all) = (member.is_led, self.text.length().is_some_and(|all| una > all));
        let nxt = match is_dormant {
            true => Some(self.nxt),
            // The distance is taken from `una`: taken from the group's position, a member that is 4 GiB
            // behind would appear to have caught up.
            false => self.position(edge.nxt, una),
        };
        if let Some(Some(member)) = self.members.get_mut(id as usize) {
            member.una = member.una.max(una);
            member.round_trip_ns = connection.round_trip_ns();
            member.has_timed_out = connection.has_timed_out();
            member.is_after_timeout = connection.is_after_timeout();
            let is_progress = una >= member.progress.0 + u64::from(self.mss) || Some(una) == nxt;
            if is_progress && una > member.progress.0 {
                member.progress = (una, now);
            }
        }
        if is_led && !has_all && !connection.is_closed() {
            let limit = self.position(edge.limit, una).unwrap_or(una);
            self.set_least(id, MemberMinimum { limit, una });
            self.limit_segments(id, edge.mss);
            self.control(id, ReceiverReport::of(&edge, una, connection), now);
        } else if is_led {
            self.set_least(id, MemberMinimum::NONE);
            self.end_lead(id);
        } else if let Some(nxt) = nxt.filter(|nxt| has_answered && self.may_lead(id, una, *nxt)) {
            self.lead(id, connection, nxt, now);
        } else {
            self.ask_for_text(id, connection);
        }
        self.drop_acknowledged();
        self.check_end(id, connection, now);
    }

    /// Returns `true` if the group may send all new data to a member from now on: its connection has sent
    /// everything before `nxt`, the group's position. A member that was only silent is led again before, as soon as
    /// the group does not wait for it: it has acknowledged as much as the slowest member, and the group has sent it
    /// the rest already.
    fn may_lead(&self, id: MemberId, una: u64, nxt: u64) -> bool {
        let Some(Some(member)) = self.members.get(id as usize) else { return false };
        let was_silent = member.left_at.is_some() && !member.has_asked;
        let is_level = una >= self.tree.least().una.max(self.text.first());
        nxt == self.nxt
            || was_silent && is_level && self.controller.is_some() && !self.has_sent_all()
    }

    /// Marks a member to which the group sends all new data from now on. The group has sent what its own connection has
    /// not sent, from `nxt` on.
    fn lead<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &mut Connection<B>,
        nxt: u64,
        now: Instant,
    ) {
        let send = self.sends.first_after(nxt);
        if let Some(Some(member)) = self.members.get_mut(id as usize) {
            (member.is_led, member.send) = (true, send);
            member.double_silence_limit();
        }
        connection.follow_group(self.controller.is_some());
        self.before(id, connection, now);
        let edge = connection.group_edge();
        let una = self.position(edge.una, self.nxt).unwrap_or(self.nxt);
        if una < self.tree.least().una {
            // The slowest member is another one now, and its pace is not known.
            self.slow_check.forget_pace();
        }
        let limit = self.position(edge.limit, una).unwrap_or(una);
        let has_all = self.text.length().is_some_and(|all| una > all);
        self.set_least(
            id,
            if has_all { MemberMinimum::NONE } else { MemberMinimum { limit, una } },
        );
        self.limit_segments(id, edge.mss);
    }

    /// Limits the segments of the group to `mss` bytes of data, which is the limit of a member to which the
    /// group sends.
    #[inline]
    fn limit_segments(&mut self, id: MemberId, mss: u32) {
        let Some(Some(member)) = self.members.get_mut(id as usize) else { return };
        let old = core::mem::replace(&mut member.mss, mss);
        if old != mss {
            self.change_segments(old, mss);
        }
    }

    /// Replaces the segment size `old` of a member by `new`, both in bytes. Costs O(n) if no other member had
    /// the smallest size.
    fn change_segments(&mut self, old: u32, new: u32) {
        if new < self.mss {
            (self.mss, self.smallest) = (new, 1);
            return;
        }
        self.smallest += usize::from(new == self.mss);
        self.smallest -= usize::from(old == self.mss);
        if old == self.mss && self.smallest == 0 {
            let all = self.members.iter().flatten().map(|member| member.mss);
            self.mss = all.clone().fold(self.config.largest_segment_bytes, u32::min);
            self.smallest = all.filter(|mss| *mss == self.mss).count();
        }
    }

    /// Counts `bytes` that a member's connection retransmits.
    #[inline]
    pub fn count_repair(&mut self, id: MemberId, bytes: usize) {
        if let Some(Some(member)) = self.members.get_mut(id as usize) {
            member.repaired_bytes += bytes as u64;
        }
    }

    fn check_end<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &Connection<B>,
        now: Instant,
    ) {
        let length = self.text.length();
        let Some(Some(member)) = self.members.get_mut(id as usize) else { return };
        let has_all = length.is_some_and(|length| member.una > length);
        let outcome = match connection.state() {
            State::TimeWait if has_all => Outcome::Done,
            State::Closed(closed) => match (member.ejected, closed.failure) {
                (Some(ejected), _) => ejected,
                (None, None) if has_all => Outcome::Done,
                (None, failure) => Outcome::Failed(failure.unwrap_or(Failure::Reset)),
            },
            _ => {
                if has_all && member.confirm_by.is_none() {
                    member.confirm_by = Some(now + CONFIRMS_WITHIN);
                    self.slow_check.schedule_check(now + CONFIRMS_WITHIN);
                }
                return;
            }
        };
        let event = GroupEvent::Ended {
            id,
            outcome,
            bytes: member.una.min(length.unwrap_or(u64::MAX)) - member.start.min(member.una),
            repaired_bytes: member.repaired_bytes,
            time: now.since(member.joined_at),
        };
        self.remove(id);
        self.events.push_back(event);
    }

    /// Removes a member, and recomputes the slowest position and the smallest segment size without it.
    fn remove(&mut self, id: MemberId) {
        self.set_least(id, MemberMinimum::NONE);
        self.end_lead(id);
        if let Some(member) = self.members[id as usize].take() {
            self.change_segments(member.mss, u32::MAX);
            if member.is_late {
                self.forget_latecomer();
            }
        }
        self.free.push(id);
        self.touched.retain(|touched| *touched != id);
        self.wanted.retain(|wanted| wanted.id != id);
        self.blocks.forget_member(id);
        self.drop_acknowledged();
    }

    /// Asks the owner to abort the connection of a member, unless it has been asked already.
    pub(super) fn eject(&mut self, id: MemberId, why: Outcome) {
        let Some(Some(member)) = self.members.get_mut(id as usize) else { return };
        if member.ejected.replace(why).is_none() {
            self.events.push_back(GroupEvent::Abort(id));
        }
    }

    /// Returns the positions of the group. Costs O(n).
    #[must_use]
    pub fn progress(&self) -> Progress {
        // A window probe may have gone beyond the group's position.
        let sent = self.nxt.min(self.text.length().unwrap_or(u64::MAX));
        let mut unas: Vec<u64> = self.members.iter().flatten().map(|it| it.una.min(sent)).collect();
        let middle = unas.len() / 2;
        let median = match unas.len() {
            0 => 0,
            _ => *unas.select_nth_unstable(middle).1,
        };
        Progress {
            sent,
            slowest: unas.iter().min().copied().unwrap_or(0),
            median,
            receivers: unas.len(),
            catching_up: self.members.iter().flatten().filter(|it| !it.is_led).count(),
        }
    }

    /// Returns the member that has acknowledged least, or `None` without members. Costs O(n).
    #[must_use]
    pub fn slowest(&self) -> Option<MemberId> {
        let members = self.members.iter().zip(0..);
        let unas = members.filter_map(|(member, id)| Some((member.as_ref()?.una, id)));
        unas.min().map(|(_, id)| id)
    }
}

/// Maximum number of bytes that a receiver in catch-up can have received from the group: the largest window
/// (RFC 7323, section 2.3).
const MOST_AHEAD: u64 = 1 << 30;
/// The time within which a receiver must confirm that it has received everything. The receiver may need this
/// time to check and store the data.
pub(super) const CONFIRMS_WITHIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
