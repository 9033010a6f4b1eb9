//! A connection to one receiver of a group: new data is sent once for all receivers, and everything else is
//! handled by this connection (Chan and Cheriton 2013, section 4).
//!
//! Separate because only in a group does a connection account for segments that it has not sent itself. The
//! group reports its sends by [`Connection::sent_by_group`], and reads the send limit from
//! [`Connection::group_edge`]. ACKs, round-trip times, the congestion window, loss recovery and
//! timers work as in any other connection.

use alloc::boxed::Box;
use core::net::IpAddr;

use rxo_frame::{Duration, Instant};
use rxo_wire::{FlowKey, SeqNumber};

use super::Connection;
use super::buffers::BYTES_FOR_A_RANGE;
use super::plan::SendReason;
use super::terms::Terms;
use crate::congestion::Congestion;
use crate::sequence::{distance, earlier, later};
use crate::timer::Timer;
use crate::timestamps::Timestamps;
use crate::{Secret, State, isn};

/// The values that all connections of a group share, so that one segment suits all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSeed {
    /// The initial sequence number of every connection. Random for each group; only receivers may know it.
    pub iss: SeqNumber,
    /// The offset of the timestamp clock that all connections share, in milliseconds.
    pub timestamp_offset: u32,
}

impl GroupSeed {
    /// Returns a seed that only the owner of `secret` can compute, for a group that starts at `now`. `pair` is
    /// the flow key of the segments that the group sends.
    #[must_use]
    pub fn new(secret: Secret, pair: &FlowKey, now: Instant) -> Self {
        Self {
            iss: isn::initial_sequence_number(secret, pair, now),
            timestamp_offset: isn::timestamp_offset(secret, pair),
        }
    }
}

/// The range of sequence numbers in which a group may send, as limited by one of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupEdge {
    /// SND.UNA: the oldest sequence number that the receiver has not acknowledged.
    pub una: SeqNumber,
    /// SND.NXT: the next sequence number to be sent for the first time.
    pub nxt: SeqNumber,
    /// The sequence number before which new data may be sent; if the limit is at or before SND.NXT, no new data
    /// may be sent. The limit follows from the peer's window, and from the congestion window unless the group
    /// controls the congestion.
    pub limit: SeqNumber,
    /// Eff.snd.MSS: the payload of a full segment, in bytes.
    pub mss: u32,
    /// The number of bytes between SND.UNA and SND.NXT that count as in flight.
    pub in_flight: u32,
    /// The number of bytes after SND.UNA that the receiver holds out of order.
    pub sacked: u32,
    /// The number of loss events so far, at most one per flight. The counter wraps.
    pub loss_events: u32,
}

/// The data that a receiver in catch-up may have received from the group, although the receiver's own
/// connection has not sent this data yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// The sequence number after all data that the group has sent and the receiver could have accepted.
    sent: SeqNumber,
    /// The largest valid ACK number that has arrived so far.
    acked: SeqNumber,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Makes this a connection of the group with `seed`. Does nothing outside LISTEN. The connection sends up
    /// to `buffer_bytes` of data that the group shares with it, whatever [`Connection::set_buffers`] grants,
    /// because all receivers share this memory.
    pub fn join_group(&mut self, seed: GroupSeed, buffer_bytes: u32) {
        if self.state != State::Listen {
            return;
        }
        self.timestamps = Timestamps::new(seed.timestamp_offset);
        self.snd.buffer.resize(buffer_bytes);
        let ranges = self.config.sent_ranges.max((buffer_bytes / BYTES_FOR_A_RANGE) as usize);
        self.recovery.set_limit(ranges);
        let first = seed.iss + 1;
        self.ahead = Some(Box::new(Ahead { sent: first, acked: first }));
        self.terms = Terms::with_iss(seed.iss);
    }

    /// Lets the group send all new data from now on; this connection then only retransmits lost data. If
    /// `controls` is `true`, the group controls the congestion, and the congestion window of this connection
    /// does not limit the group. Does nothing for a connection without a group.
    pub fn follow_group(&mut self, controls: bool) {
        if self.terms.allow_owner_text() {
            self.ahead = None;
            if controls {
                self.recovery.forget_suspicion();
                self.congestion.leave_to_owner();
            }
        }
    }

    /// Leaves the group: from now on this connection itself sends the remaining data, until its receiver has
    /// caught up.
    pub(crate) fn leave_group(&mut self) {
        self.terms.send_again();
        self.ahead = Some(Box::new(Ahead { sent: self.snd.nxt, acked: self.snd.una }));
        self.recovery.forget_suspicion();
        self.congestion = Congestion::new(&self.config, self.snd.mss);
    }

    /// Returns the name by which a group identifies the receiver at `address` in its segments.
    pub(crate) fn name(address: IpAddr) -> u32 {
        match address {
            IpAddr::V4(address) => address.to_bits(),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                (bits ^ bits >> 32 ^ bits >> 64 ^ bits >> 96) as u32
            }
        }
    }

    /// Returns the ISS that the group has chosen, or `None` if this connection has no group.
    pub(crate) fn group_iss(&self) -> Option<SeqNumber> {
        self.terms.iss()
    }

    /// Records the sends of the group: each item is the sequence number after a send and the time at which it
    /// was sent. The first send begins at SND.NXT. Call this method after the sent data was passed to
    /// [`Connection::send_shared`], and before any later input.
    pub fn sent_by_group(
        &mut self,
        sends: impl IntoIterator<Item = (SeqNumber, Instant)>,
        now: Instant,
    ) {
        let first = self.snd.nxt;
        for (end, at) in sends {
            let (start, end) = (self.snd.nxt, earlier(end, self.snd.end()));
            if start.is_before(end) {
                self.recovery.sent(start, end, at);
                self.note_on_path((start, end), SendReason::New, at);
                self.snd.sent_until(end, at);
            }
        }
        if first.is_before(self.snd.nxt) {
            self.on_group_sent(now);
        }
    }

    /// Records that the group has sent everything before `end`, which must be less than 2³¹ after SND.UNA.
    /// Does nothing unless this connection catches up.
    pub(crate) fn group_has_sent(&mut self, end: SeqNumber) {
        if let Some(ahead) = &mut self.ahead {
            ahead.sent = end;
        }
    }

    /// Returns `ack`, limited to the data in the send buffer of this connection. A receiver that catches up
    /// also accepts data sent to the group if the data fits its window. So the receiver may acknowledge data
    /// that its own connection has not sent.
    #[inline(always)]
    pub(crate) fn ack_of_own_text(&mut self, ack: SeqNumber, now: Instant) -> SeqNumber {
        match self.ahead.as_deref().copied() {
            Some(ahead) => self.ack_of_lent_text(ahead, ack, now),
            None => ack,
        }
    }

    /// Does the work of [`Connection::ack_of_own_text`] for a receiver that catches up. Out of line, because
    /// only such a receiver needs it.
    #[cold]
    fn ack_of_lent_text(&mut self, ahead: Ahead, ack: SeqNumber, now: Instant) -> SeqNumber {
        let is_ahead = self.snd.nxt.is_before(ack);
        // The peer's window may be larger than the last one known, because ACKs are lost. A forger must still
        // guess.
        let windows = self.snd.wnd.saturating_add(self.snd.max_wnd);
        let most = distance(self.snd.una, ahead.sent).min(windows);
        if !is_ahead || distance(self.snd.una, ack) > most {
            return ack;
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.acked = later(ahead.acked, ack);
        }
        let own = earlier(ack, self.snd.end());
        self.sent_by_group([(own, now)], now);
        own
    }

    /// Returns SEG.SEQ of a reset: the number that the peer expects. A receiver that catches up may hold more
    /// data than its connection has sent.
    pub(crate) fn reset_seq(&self) -> SeqNumber {
        let seq = self.snd.acceptable();
        self.ahead.as_ref().map_or(seq, |ahead| later(seq, ahead.acked))
    }

    /// Updates timers and the congestion window after the group has sent new data.
    fn on_group_sent(&mut self, now: Instant) {
        if self.recovery.has_probe_due() {
            // The new data is the probe (RFC 8985, section 7.3).
            self.timers.stop(Timer::Retransmit);
        }
        let in_flight = self.recovery.in_flight();
        self.congestion.on_held(now, self.fills_window(in_flight), in_flight);
        self.restart_tail_probe(now);
        if self.is_peer_done() && self.snd.has_sent_fin() {
            self.state = self.state.after_both_fins();
        }
        self.update_timers(now);
    }

    /// Returns `true` if the congestion window of this connection limits the group, so that the window may
    /// grow. In slow start half a window in flight is enough, because the slowest receivers determine when
    /// the other half is sent.
    pub(super) fn fills_window(&self, in_flight: u32) -> bool {
        if self.congestion.is_starting() {
            in_flight >= self.congestion.cwnd() / 2
        } else {
            self.congestion.allowed(in_flight) < 2 * self.snd.mss
        }
    }

    /// Returns the smoothed round-trip time in nanoseconds; zero before the first sample.
    #[inline]
    pub(crate) fn round_trip_ns(&self) -> u64 {
        self.recovery.rtt.smoothed_ns().unwrap_or_default()
    }

    /// Returns `true` if the retransmission timer has expired since new data was acknowledged.
    #[inline]
    pub(crate) fn has_timed_out(&self) -> bool {
        self.recovery.rtt.backed_off() > 0
    }

    /// Returns `true` until the data that was outstanding at the last retransmission timeout is acknowledged.
    #[inline]
    pub(crate) fn is_after_timeout(&self) -> bool {
        self.recovery.is_after_timeout()
    }

    /// Returns the range in which the group may send for this receiver. No new data may be sent while lost
    /// data waits to be retransmitted.
    #[must_use]
    pub fn group_edge(&self) -> GroupEdge {
        let in_flight = self.recovery.in_flight();
        let may_send = self.state.sends_text() && self.recovery.has_room();
        let allowed = match self.congestion.is_owners() {
            true if may_send => MOST_ALLOWED,
            false if may_send && !self.recovery.has_lost() => self.congestion.allowed(in_flight),
            _ => 0,
        };
        let window = self.snd.una + self.snd.wnd;
        GroupEdge {
            una: self.snd.una,
            nxt: self.snd.nxt,
            limit: earlier(later(self.snd.nxt, self.snd.una) + allowed, window),
            mss: self.snd.mss,
            in_flight,
            sacked: self.recovery.sacked(),
            loss_events: self.recovery.loss_events(),
        }
    }
}

/// The number of bytes that may be sent without a congestion window, because the owner controls the congestion:
/// the largest window.
const MOST_ALLOWED: u32 = 1 << 30;

/// The shortest time that a group waits for an ACK before it sends a probe (RFC 8985, section
/// 7.2, TLP.max_ack_delay). The receivers of a group acknowledge few segments, with a delay. An early probe
/// would repeat a segment that is still on its way, once for each receiver, and all of them would answer.
pub(crate) const RECEIVER_WAITS: Duration = Duration::from_millis(10);
