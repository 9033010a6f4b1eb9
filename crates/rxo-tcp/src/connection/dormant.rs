//! Dormant connections: members of a group that do not track outstanding data, because their group tracks it
//! for all receivers at once.
//!
//! Separate because this is the fast path of a group's ACKs: nearly all of them acknowledge, in
//! order, everything up to some sequence number. To process such an ACK the connection needs no
//! data, no ranges of sent data and no timers; SND.NXT equals SND.UNA. Any other event must wake the connection
//! first: [`Connection::sent_by_group`] then records all outstanding data again.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;
use rxo_wire::tcp::AckRecord;

use super::group::RECEIVER_WAITS;
use super::{Connection, Persist};
use crate::sequence::distance;
use crate::timer::Timer;

/// The data of a group that one receiver has not acknowledged, as recorded by the group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    /// The sequence number after everything that the group has sent.
    pub(crate) nxt: SeqNumber,
    /// `true` if the group has sent data since the last ACK of this receiver.
    pub(crate) is_more: bool,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Drops the record of outstanding data, which the group keeps instead. Returns `false`, and changes
    /// nothing, if the connection needs this record: data may be lost, an ACK is due, or the peer's
    /// window is closed.
    pub(crate) fn make_dormant(&mut self) -> bool {
        let has_pending_acks = self.acks.is_delaying() || self.acks.count_pending() > 0;
        if has_pending_acks || self.is_window_closed() || !self.may_expect_acks() {
            return false;
        }
        if !self.recovery.forget_sent() {
            return false;
        }
        self.snd.buffer.advance(self.snd.buffer.len());
        self.snd.nxt = self.snd.una;
        self.persist = Persist::default();
        for timer in [Timer::Retransmit, Timer::TailLoss, Timer::GiveUp] {
            self.timers.stop(timer);
        }
        true
    }

    /// Returns `true` if a dormant connection can process `record` without waking: the ACK acknowledges new
    /// data, changes nothing else, and leaves the peer's window open for a full segment.
    #[inline]
    pub(crate) fn expects_dormant_ack(&self, record: &AckRecord, nxt: SeqNumber) -> bool {
        self.is_plain_ack(record)
            && self.snd.una.is_before(record.ack)
            && nxt.is_at_or_after(record.ack)
            && u32::from(record.window) << self.snd.scale >= self.snd.mss
    }

    /// Processes an ACK that [`Connection::expects_dormant_ack`] accepts. The acknowledged data
    /// was last sent at `sent_at`.
    #[inline]
    pub(crate) fn take_dormant_ack(
        &mut self,
        now: Instant,
        record: &AckRecord,
        sent_at: Instant,
        sends: Outstanding,
    ) {
        if sends.is_more {
            let in_flight = distance(self.snd.una, sends.nxt);
            self.congestion.on_held(now, self.fills_window(in_flight), in_flight);
        }
        let una = self.snd.una;
        self.note_expected_ack(now, record);
        let arrived_at = Instant::from_nanos(record.arrived_at_ns).min(now);
        let range = (una, record.ack);
        self.recovery.on_dormant_ack(
            (now, arrived_at),
            range,
            (sent_at, sends.nxt),
            &mut self.congestion,
        );
        self.snd.free(una, record.ack);
        self.snd.nxt = record.ack;
        self.pace();
        self.restart_keep_alive(now);
    }

    /// Returns the number of bytes after SND.UNA that the group may send for a dormant connection.
    #[inline]
    pub(crate) fn dormant_allowance(&self, nxt: SeqNumber) -> u32 {
        let in_flight = distance(self.snd.una, nxt);
        (in_flight + self.congestion.allowed(in_flight)).min(self.snd.wnd)
    }

    /// Returns `true` if a timer will release more of the congestion window later.
    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.congestion.release_at().is_some()
    }

    /// Returns the time that the group waits for an ACK before it wakes the connection: the time
    /// after which the connection would send a tail loss probe.
    #[inline]
    pub(crate) fn dormant_timeout(&self) -> Duration {
        Duration::from_nanos((self.round_trip_ns() * 2).max(RECEIVER_WAITS.as_nanos() as u64))
    }
}
