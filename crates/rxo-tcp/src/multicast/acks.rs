//! The fast path of ACKs: the cost of an ACK must depend neither on the amount of
//! data that the group sends nor on the number of receivers.
//!
//! A member whose receiver acknowledges in order is dormant: its connection has no record of outstanding data
//! and is not polled. An ACK updates the connection's round-trip time, window and SND.UNA, and the receiver's
//! position in the tree (`tree.rs`). Any other event wakes the connection ([`Group::before`]). One timer of the
//! group replaces the timers of dormant connections: it wakes members that have not acknowledged for two round
//! trips.

use rxo_frame::{Duration, Instant};
use rxo_wire::tcp::AckRecord;

use super::member::Member;
use super::sends::CHECK_AFTER;
use super::tree::MemberMinimum;
use super::{Group, MemberId};
use crate::connection::Outstanding;
use crate::{Arrival, Connection};

/// The state of a member's connection: awake with a record of outstanding data, or dormant without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleep {
    /// The connection has a record of the group's sends that were reported to it.
    Awake,
    /// The connection has no record of outstanding data. The group wakes the connection if the receiver has not
    /// acknowledged a send within this time.
    Dormant(Duration),
    /// The connection has no record of outstanding data yet, but is about to be woken.
    Wakes,
}

impl Group {
    /// Passes pure ACKs to a member's connection, many in one call. Do not call [`Group::before`] first.
    /// Returns `true` if the connection must be polled: the caller then calls
    /// [`poll_transmit`](Connection::poll_transmit) of the connection, then [`Group::after`].
    #[inline]
    pub fn on_acks<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &mut Connection<B>,
        records: impl IntoIterator<Item = AckRecord>,
        now: Instant,
    ) -> bool {
        let mut records = records.into_iter();
        while let Some(record) = records.next() {
            if !self.take_dormant(id, connection, &record, now) {
                self.before(id, connection, now);
                let rest = core::iter::once(record).chain(records);
                connection.on_arrival(now, Arrival::acks(rest));
                return true;
            }
        }
        connection.is_paced()
    }

    /// Processes `record` and returns `true` if the member is dormant or can become dormant. Returns `false`
    /// if the connection must process the record.
    #[inline]
    fn take_dormant<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &mut Connection<B>,
        record: &AckRecord,
        now: Instant,
    ) -> bool {
        let (all, nxt) = (self.nxt, self.seq(self.nxt));
        // The last ACKs end connections, and the first one without a leader chooses a leader, so
        // these take the slow path.
        if self.has_sent_all()
            || self.lacks_leader()
            || !connection.expects_dormant_ack(record, nxt)
        {
            return false;
        }
        let Some(una) = self.position(record.ack, all) else { return false };
        let Self { members, sends, tree, late, text, blocks, mss, .. } = self;
        let Some(Some(member)) = members.get_mut(id as usize) else { return false };
        // A member that has caught up may have outstanding data that the group has dropped.
        let may_sleep = member.is_led && una >= text.first();
        let sleeps = member.is_dormant() || may_sleep && connection.make_dormant();
        if !sleeps {
            return false;
        }
        let is_more = member.send != sends.next();
        let outstanding = Outstanding { nxt, is_more };
        connection.take_dormant_ack(now, record, sends.when(una), outstanding);
        // A member that answers is not silent, and stays.
        (member.una, member.send, member.leaves) = (una, sends.next(), false);
        member.sleep = Sleep::Dormant(connection.dormant_timeout());
        if una >= member.progress.0 + u64::from(*mss) || una == all {
            member.progress = (una, now);
        }
        let limit = una + u64::from(connection.dormant_allowance(nxt));
        tree.set(id as usize, MemberMinimum { limit, una });
        late.set(id, member.is_late, MemberMinimum { limit, una });
        text.advance(blocks.advance(tree.least().una));
        if una < all {
            // The connection's own timers are off. No further send may come to start the group's timer, so
            // start it here.
            sends.check_again(now);
        }
        if let Some(controller) = &mut self.controller
            && controller.is_led_by(id)
        {
            let (round_trip_ns, mss) = (connection.round_trip_ns(), self.mss);
            controller.advance((una, una, una), round_trip_ns, (now, all, mss));
        }
        true
    }

    /// Prepares the connection of a member for being polled: wakes it and reports the group's sends to it, as
    /// [`Group::before`] does. Does nothing if the connection is dormant and has no timer that is due, unless
    /// the whole stream has been sent.
    #[inline]
    pub fn wake<B: AsRef<[u8]>>(
        &mut self,
        id: MemberId,
        connection: &mut Connection<B>,
        now: Instant,
    ) {
        let Some(Some(member)) = self.members.get(id as usize) else { return };
        let is_due = || connection.poll_at().is_some_and(|at| at <= now);
        let sleeps_on = matches!(member.sleep, Sleep::Dormant(_)) && !is_due();
        if !sleeps_on || self.has_sent_all() {
            self.before(id, connection, now);
        }
    }

    /// Marks a dormant member as awake, so that its connection receives the data and the record of what is
    /// outstanding.
    pub(super) fn end_sleep(&mut self, id: MemberId) {
        let Some(Some(member)) = self.members.get_mut(id as usize) else { return };
        member.sleep = Sleep::Awake;
        (member.given, member.send) = (member.una, self.sends.first_after(member.una));
    }

    /// Marks members that have not acknowledged for too long, so that the owner wakes them. Schedules another
    /// check if any data is still outstanding.
    pub(super) fn wake_overdue(&mut self, now: Instant) {
        let Self { members, sends, touched, nxt, tree, .. } = self;
        let slowest = tree.least().una;
        if slowest < *nxt && now < sends.when(slowest + 1) + CHECK_AFTER {
            // No member can have waited for so long.
            sends.check_again(now);
            return;
        }
        let mut waits = false;
        for (member, id) in members.iter_mut().zip(0..) {
            let Some(member) = member else { continue };
            let Sleep::Dormant(timeout) = member.sleep else { continue };
            if member.una == *nxt {
                continue;
            }
            if sends.when(member.una + 1) + timeout <= now {
                member.sleep = Sleep::Wakes;
                touched.push_back(id);
            } else {
                waits = true;
            }
        }
        if waits {
            sends.check_again(now);
        }
    }
}

impl Member {
    /// Returns `true` if the member's connection has no record of outstanding data.
    pub(super) fn is_dormant(&self) -> bool {
        self.sleep != Sleep::Awake
    }
}
