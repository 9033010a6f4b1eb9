//! The state TIME-WAIT in a compact form, without a connection.
//!
//! A server that closes first has thousands of connections in TIME-WAIT, and each needs only two sequence
//! numbers and a few other fields. Separate from [`Connection`] so that an owner can keep these fields in a
//! table of its own. Implements the rules of RFC 9293, section 3.10.7.4 for this state. Does not allocate.

use rxo_frame::Instant;
use rxo_wire::tcp::Timestamp;
use rxo_wire::{SeqNumber, TcpFlags};

use crate::options::OptionBytes;
use crate::segment::Segment;
use crate::timestamps::Timestamps;
use crate::{Connection, Reuse, State, Transmit};

/// The remaining state of a connection in TIME-WAIT: 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWait {
    /// SND.NXT: the sequence number after all that this side has sent.
    snd_nxt: SeqNumber,
    /// RCV.NXT: the sequence number after all that the peer has sent.
    rcv_nxt: SeqNumber,
    /// TS.Recent, the peer's timestamp to echo; meaningless without timestamps.
    ts_recent: u32,
    /// The offset of our timestamps, in milliseconds.
    ts_offset: u32,
    /// The time of the last rate-limited answer to a segment, on a wrapping clock of milliseconds.
    answered_ms: u32,
    /// SEG.WND of every answer: the window field of the header.
    window: u16,
    has_timestamps: bool,
}

/// The reaction to a segment for a connection in TIME-WAIT.
#[derive(Clone, Copy, Debug)]
pub enum InTimeWait {
    /// The segment has no effect: drop it.
    Ignored,
    /// The segment is answered by an ACK. If `restarts` is `true`, TIME-WAIT begins again.
    Answered {
        /// The ACK to send.
        ack: Transmit<'static>,
        /// `true` if the peer has repeated its FIN.
        restarts: bool,
    },
    /// The segment is a SYN that may open a new connection between the same sockets (RFC 6191). Call
    /// [`Connection::follow`] on the new connection, and drop the old one.
    Reused(Reuse),
    /// The peer has reset the connection, which is over.
    Over,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Closes this connection if it is in TIME-WAIT, and returns its compact state and the time at which
    /// TIME-WAIT ends. Received data stays readable. Returns `None` in any other state, and while a segment is
    /// to be sent.
    pub fn take_time_wait(&mut self, now: Instant) -> Option<(TimeWait, Instant)> {
        if self.state != State::TimeWait || self.has_to_send() {
            return None;
        }
        let until = self.poll_at()?;
        let left = self.time_wait(now);
        self.time_wait_is_over();
        Some((left, until))
    }

    /// Returns the compact TIME-WAIT state of this connection.
    pub(crate) fn time_wait(&self, now: Instant) -> TimeWait {
        TimeWait {
            snd_nxt: self.snd.nxt,
            rcv_nxt: self.rcv.nxt,
            ts_recent: self.timestamps.recent(),
            ts_offset: self.timestamps.clock(Instant::ZERO),
            // Allows the first answer at once.
            answered_ms: millis(now).wrapping_sub(LEAST_MS_BETWEEN_ANSWERS),
            window: self.rcv.window_field_for(self.rcv.nxt),
            has_timestamps: self.timestamps.is_agreed,
        }
    }
}

impl TimeWait {
    /// Processes a segment for this connection by the steps of RFC 9293, section 3.10.7.4, with a window of
    /// zero: the peer has sent its FIN, so no data can follow. Returns the reaction.
    pub fn on_segment<B>(&mut self, now: Instant, segment: &Segment<B>) -> InTimeWait {
        if let Some(reuse) = self.reuse_by(segment) {
            return InTimeWait::Reused(reuse);
        }
        let is_reset = segment.has(TcpFlags::RST);
        let is_in_time = match segment.options.timestamp {
            _ if !self.has_timestamps || is_reset => true,
            // The segment does not belong to this connection (RFC 7323, section 3.2).
            None => return InTimeWait::Ignored,
            Some(timestamp) => timestamp.value.wrapping_sub(self.ts_recent) as i32 >= 0,
        };
        let is_next = segment.seq == self.rcv_nxt;
        match (is_reset, is_next) {
            (true, true) => return InTimeWait::Over,
            (true, false) => return InTimeWait::Ignored,
            _ => {}
        }
        let is_acknowledgement =
            segment.is_empty() && segment.has(TcpFlags::ACK) && segment.ack == self.snd_nxt;
        if is_in_time && is_next && is_acknowledgement {
            return InTimeWait::Ignored;
        }
        self.answer(now, segment, is_in_time)
    }

    /// Returns the permission to reuse the connection if `segment` is a SYN that may open a new connection,
    /// otherwise `None`. With timestamps, its timestamp must be newer (RFC 6191, section 2); without them,
    /// its sequence number must be larger (RFC 9293, section 3.6.1).
    #[must_use]
    pub fn reuse_by<B>(&self, segment: &Segment<B>) -> Option<Reuse> {
        let is_syn = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::RST | TcpFlags::ACK);
        if !is_syn {
            return None;
        }
        let newer_by = segment.options.timestamp.filter(|_| self.has_timestamps);
        let newer_by = newer_by.map_or(0, |stamp| stamp.value.wrapping_sub(self.ts_recent) as i32);
        let is_newer = match newer_by {
            0 => self.rcv_nxt.is_before(segment.seq),
            more => more > 0,
        };
        is_newer.then_some(Reuse { iss_after: self.snd_nxt })
    }

    /// Always answers a retransmitted FIN; answers any other segment at a limited rate. Without the limit, two
    /// sides that disagree about the connection could answer each other without end, and an attacker could
    /// cause any number of answers (RFC 5961, section 7).
    fn answer<B>(&mut self, now: Instant, segment: &Segment<B>, is_in_time: bool) -> InTimeWait {
        // The peer has sent no FIN at another position: such a FIN may be forged.
        let is_fin = segment.has(TcpFlags::FIN)
            && !segment.has(TcpFlags::SYN)
            && segment.seq + segment.text_bytes() + 1 == self.rcv_nxt;
        if !is_fin {
            if millis(now).wrapping_sub(self.answered_ms) < LEAST_MS_BETWEEN_ANSWERS {
                return InTimeWait::Ignored;
            }
            self.answered_ms = millis(now);
        }
        InTimeWait::Answered { ack: self.acknowledge(now), restarts: is_fin && is_in_time }
    }

    fn acknowledge(&self, now: Instant) -> Transmit<'static> {
        let mut options = OptionBytes::default();
        if self.has_timestamps {
            let value = Timestamps::new(self.ts_offset).clock(now);
            options.push_timestamp(Timestamp { value, echo: self.ts_recent });
        }
        Transmit {
            seq: self.snd_nxt,
            ack: self.rcv_nxt,
            flags: TcpFlags::ACK,
            window: self.window,
            options,
            ..Transmit::default()
        }
    }
}

fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// The shortest time between two rate-limited answers, in milliseconds; Linux uses this value, too.
const LEAST_MS_BETWEEN_ANSWERS: u32 = 500;
