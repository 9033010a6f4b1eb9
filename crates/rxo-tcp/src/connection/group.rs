//! A connection to one receiver of a group: new text leaves once, for all receivers, and everything else is this
//! connection's own (Chan and Cheriton 2013, section 4).
//!
//! Separate because only here a connection learns of segments that it has not sent itself. The group says what it
//! sent ([`Connection::sent_by_group`]), and asks how far it may go on ([`Connection::group_edge`]); acknowledgements,
//! round trips, the congestion window, loss recovery and timers are those of any connection.

use alloc::boxed::Box;

use rxo_frame::{Duration, Instant};
use rxo_wire::{FlowKey, SeqNumber};

use super::Connection;
use super::buffers::BYTES_FOR_A_RANGE;
use super::plan::Why;
use super::terms::Terms;
use crate::sequence::{distance, earlier, later};
use crate::timer::Timer;
use crate::timestamps::Timestamps;
use crate::{Secret, State, isn};

/// What the connections of a group have in common, so that one segment suits all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSeed {
    /// ISS of every connection. Random for each group: only receivers may know it.
    pub iss: SeqNumber,
    /// The offset of the clock of timestamps, in milliseconds.
    pub timestamp_offset: u32,
}

impl GroupSeed {
    /// A seed that only the owner of `secret` can know, for a group that sends as `pair` from `now` on.
    #[must_use]
    pub fn new(secret: Secret, pair: &FlowKey, now: Instant) -> Self {
        Self {
            iss: isn::initial_sequence_number(secret, pair, now),
            timestamp_offset: isn::timestamp_offset(secret, pair),
        }
    }
}

/// How far a group may send, as one of its connections sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupEdge {
    /// SND.UNA.
    pub una: SeqNumber,
    /// SND.NXT.
    pub nxt: SeqNumber,
    /// New text before this may leave; before SND.NXT if none may. The peer's window and the congestion window set it.
    pub limit: SeqNumber,
    /// Eff.snd.MSS, in bytes.
    pub mss: u32,
}

/// What the group has sent and a receiver that catches up has, though its own connection may not be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// The sequence number after all that the group has sent, as far as the receiver could take it.
    sent: SeqNumber,
    /// The largest valid ACK number.
    acked: SeqNumber,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Makes this a connection of the group with `seed`, to be called in LISTEN. It sends up to `buffer_bytes` of text
    /// that is lent to it, whatever [`Connection::set_buffers`] grants: the text is shared with the other receivers.
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

    /// From now on the group sends all new text; this connection only repeats what is lost. Does nothing for a
    /// connection without a group.
    pub fn follow_group(&mut self) {
        if self.terms.let_owner_send() {
            self.ahead = None;
        }
    }

    /// ISS, if this is a connection of a group.
    pub(crate) fn group_iss(&self) -> Option<SeqNumber> {
        self.terms.iss()
    }

    /// Takes note of what the group sent: each item is the sequence number after a send, and when it left. The first
    /// begins at SND.NXT. To be called before anything that comes later goes in, with the text lent that was sent.
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
                self.note_on_path((start, end), Why::New, at);
                self.snd.sent_until(end, at);
            }
        }
        if first.is_before(self.snd.nxt) {
            self.has_been_led(now);
        }
    }

    /// Takes note that the group has sent everything before `end`, which is less than 2³¹ after SND.UNA. Does nothing
    /// unless this connection catches up.
    pub(crate) fn group_has_sent(&mut self, end: SeqNumber) {
        if let Some(ahead) = &mut self.ahead {
            ahead.sent = end;
        }
    }

    /// How much of the text that this connection has been lent an acknowledgement of `ack` is about. A receiver that
    /// catches up takes what the group sends as far as its window reaches, so it acknowledges text that left to the group
    /// and not yet by its own connection.
    #[inline(always)]
    pub(crate) fn ack_of_own_text(&mut self, ack: SeqNumber, now: Instant) -> SeqNumber {
        match self.ahead.as_deref().copied() {
            Some(ahead) => self.ack_of_lent_text(ahead, ack, now),
            None => ack,
        }
    }

    /// Out of line, because only a receiver that catches up needs it.
    #[cold]
    fn ack_of_lent_text(&mut self, ahead: Ahead, ack: SeqNumber, now: Instant) -> SeqNumber {
        let is_ahead = self.snd.nxt.is_before(ack);
        // A window that the sender has not heard of may be open, because ACKs are lost; a forger must guess still.
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

    /// SEG.SEQ of a reset: the number that the peer expects. A receiver that catches up may have more than its
    /// connection has sent.
    pub(crate) fn reset_seq(&self) -> SeqNumber {
        let seq = self.snd.acceptable();
        self.ahead.as_ref().map_or(seq, |ahead| later(seq, ahead.acked))
    }

    /// What a connection does after new text has left.
    fn has_been_led(&mut self, now: Instant) {
        if self.recovery.has_probe_due() {
            // The new text is the probe (RFC 8985, section 7.3).
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

    /// Whether this congestion window limits the group, so that it may grow. In slow start it does if half of it is
    /// used: acknowledgements of the slowest receivers decide when the other half is.
    pub(super) fn fills_window(&self, in_flight: u32) -> bool {
        if self.congestion.is_starting() {
            in_flight >= self.congestion.cwnd() / 2
        } else {
            self.congestion.allowed(in_flight) < 2 * self.snd.mss
        }
    }

    /// The smoothed round-trip time in nanoseconds; zero before the first sample.
    #[inline]
    pub(crate) fn round_trip_ns(&self) -> u64 {
        self.recovery.rtt.smoothed_ns().unwrap_or_default()
    }

    /// Whether the retransmission timer has expired since new text was acknowledged.
    #[inline]
    pub(crate) fn has_timed_out(&self) -> bool {
        self.recovery.rtt.backed_off() > 0
    }

    /// How far the group may send for this receiver. What is lost leaves before anything new.
    #[must_use]
    pub fn group_edge(&self) -> GroupEdge {
        let may_send =
            self.state.sends_text() && !self.recovery.has_lost() && self.recovery.has_room();
        let in_flight = self.recovery.in_flight();
        let allowed = if may_send { self.congestion.allowed(in_flight) } else { 0 };
        let window = self.snd.una + self.snd.wnd;
        GroupEdge {
            una: self.snd.una,
            nxt: self.snd.nxt,
            limit: earlier(later(self.snd.nxt, self.snd.una) + allowed, window),
            mss: self.snd.mss,
        }
    }
}

/// At least so long a group waits for an acknowledgement before it probes (RFC 8985, section 7.2, TLP.max_ack_delay): its
/// receivers acknowledge few segments, and delay what they do not acknowledge at once. An early probe repeats a segment
/// that is on its way, once for each receiver, and all of them answer.
pub(crate) const RECEIVER_WAITS: Duration = Duration::from_millis(10);
