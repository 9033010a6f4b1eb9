//! Joining a group, and the reasons to refuse a receiver.

use rxo_frame::Instant;

use super::acks::Sleep;
use super::control::PathState;
use super::member::{Member, MemberId};
use super::outcome::LEAST_SEGMENT_BYTES;
use super::silent::FIRST_SILENCE_LIMIT;
use super::{Group, Late, Refusal};
use crate::{Connection, GroupSeed};

impl Group {
    /// Returns the seed to give to a new connection by [`Connection::join_group`] before its SYN, unless
    /// [`Group::is_too_late`].
    #[must_use]
    pub fn seed(&self) -> GroupSeed {
        let GroupSeed { iss, timestamp_offset } = self.config.seed;
        let from = if self.config.late == Late::FromNow { self.nxt as u32 } else { 0 };
        GroupSeed { iss: iss + from, timestamp_offset }
    }

    /// Returns `true` if a receiver that joins now is refused: because it joins after the first byte
    /// ([`Late::Refuse`]), or because late receivers have used up their time
    /// ([`GroupConfig::late_time`](super::GroupConfig::late_time)). Do not pass the seed to the connection of
    /// such a receiver: with the sequence number and timestamp offset in the seed, the receiver could forge
    /// segments to the group.
    #[must_use]
    pub fn is_too_late(&self) -> bool {
        self.lateness().is_some()
    }

    /// Makes the receiver at the other end of `connection`, which has just been opened, a member.
    ///
    /// # Errors
    /// Returns the reason for a refusal. The caller must then abort the connection.
    pub fn join<B: AsRef<[u8]>>(
        &mut self,
        connection: &mut Connection<B>,
        now: Instant,
    ) -> Result<MemberId, Refusal> {
        let start = self.admit(connection)?;
        let member = Member {
            una: start,
            given: start,
            send: self.sends.next(),
            sleep: Sleep::Awake,
            is_led: false,
            leaves: false,
            left_at: None,
            silence_limit: FIRST_SILENCE_LIMIT,
            path: PathState::new(connection.pair().destination()),
            is_late: self.nxt > 0,
            mss: u32::MAX,
            is_shut: false,
            has_asked: false,
            joined_at: now,
            start,
            progress: (start, now),
            round_trip_ns: 0,
            has_timed_out: false,
            is_after_timeout: false,
            repaired_bytes: 0,
            confirm_by: None,
            ejected: None,
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.members.push(None);
            (self.members.len() - 1) as MemberId
        });
        self.members[id as usize] = Some(member);
        if self.nxt > 0 {
            self.count_latecomer();
        }
        self.wait_for(now);
        self.before(id, connection, now);
        self.after(id, connection, now);
        Ok(id)
    }

    /// Returns the position at which the stream begins for a receiver, or the reason to refuse it.
    fn admit<B: AsRef<[u8]>>(&self, connection: &Connection<B>) -> Result<u64, Refusal> {
        if let Some(why) = self.lateness() {
            return Err(why);
        }
        let start = connection.group_iss().and_then(|iss| self.position(iss + 1, self.nxt));
        let start = match self.config.late {
            Late::FromNow => start,
            _ => connection.group_iss().filter(|iss| *iss == self.config.seed.iss).map(|_| 0),
        };
        let start = start.ok_or(Refusal::NotInGroup)?;
        let statistics = connection.statistics();
        if !statistics.sack {
            return Err(Refusal::NoSack);
        }
        if !statistics.timestamps {
            return Err(Refusal::NoTimestamps);
        }
        if statistics.mss < LEAST_SEGMENT_BYTES {
            return Err(Refusal::SmallSegments(statistics.mss));
        }
        let is_full = self.receivers() >= self.config.most_receivers;
        if is_full { Err(Refusal::Full) } else { Ok(start) }
    }
}
