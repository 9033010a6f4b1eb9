//! Sends the segments that `plan.rs` has chosen.

use core::num::NonZeroU16;

use rxo_frame::Instant;
use rxo_wire::tcp::Timestamp;
use rxo_wire::{SeqNumber, TcpFlags};

use super::plan::{Plan, Range, SendReason};
use super::{Connection, Persist};
use crate::options::{LEAST_SACK_BYTES, OptionBytes};
use crate::send::Held;
use crate::sequence::{before, distance, later};
use crate::timer::Timer;
use crate::{Events, Reset, Transmit};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns the next segment to send, or `None` if there is none. After every input, call this method until
    /// it returns `None`. The returned segment counts as sent. Allocates only up to the granted buffers.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        self.trial_bytes = self.path.trial(self.snd.mss, now);
        let plan = self.plan_after_pause(now);
        let plan = match plan {
            Ok(plan) => plan,
            Err(held) => {
                self.note_held(held, now);
                return None;
            }
        };
        let transmit = match plan {
            Plan::Reset(reset) => {
                self.reset = None;
                return Some(self.emit_reset(reset, now));
            }
            Plan::Syn { acknowledges } => return Some(self.emit_syn(now, acknowledges)),
            Plan::Acks => return self.emit_acks(now),
            Plan::KeepAlive => self.emit_keep_alive(now),
            Plan::Text(range, why) => {
                self.send_text(range, why, now);
                self.emit_text(range, why, now)
            }
        };
        self.update_timers(now);
        let (start, end) = transmit.text;
        let payload = self.snd.text(start, end);
        Some(Transmit { payload, ..transmit.segment })
    }

    /// Records the reason why nothing more can be sent now.
    #[inline]
    pub(super) fn note_held(&mut self, held: Held, now: Instant) {
        // The owner limits new data, so the window of this connection limits only lost data, and grows by that.
        if !self.terms.owner_sends() || self.recovery.has_lost() {
            let in_flight = self.recovery.in_flight();
            self.congestion.on_held(now, held == Held::ByCongestion, in_flight);
        }
        self.pace();
        self.update_timers(now);
    }

    /// Returns the plan of the next segment to send, or the reason why none can be sent. Before the first data,
    /// and before the first data after idle time, the congestion window may change, so the segment is planned
    /// again (RFC 6928; RFC 5681, section 4.1; RFC 7661).
    fn plan_after_pause(&mut self, now: Instant) -> Result<Plan, Held> {
        let plan = self.plan();
        let is_new_text = matches!(plan, Ok(Plan::Text(_, SendReason::New | SendReason::Trial)));
        if !is_new_text || self.snd.outstanding() > 0 {
            return plan;
        }
        let idle = now.since(self.snd.last_sent_at);
        self.congestion.was_idle(idle);
        let round_trip = self.recovery.rtt.smoothed();
        if self.snd.una == self.snd.iss + 1 {
            self.congestion.begin(now, round_trip);
            self.pace();
        } else if idle > self.recovery.rtt.timeout() {
            self.congestion.resume(now, round_trip, self.config.restart_after_idle);
            self.pace();
        }
        self.plan()
    }

    fn emit_syn(&mut self, now: Instant, acknowledges: bool) -> Transmit<'static> {
        let rto = self.recovery.rtt.timeout();
        let mut is_first = true;
        if let Some(syn) = self.state.syn() {
            syn.is_due = false;
            syn.sent_at.get_or_insert(now);
            is_first = syn.retransmissions == 0;
        }
        self.timers.arm(Timer::Retransmit, now + rto);
        let ack = if acknowledges { self.rcv.nxt } else { SeqNumber(0) };
        Transmit {
            seq: self.snd.iss,
            ack,
            flags: self.syn_flags(acknowledges, is_first),
            window: self.rcv.syn_window(),
            options: self.syn_options(now, acknowledges),
            ..Transmit::default()
        }
    }

    /// Returns the flags of a SYN or SYN-ACK. A SYN requests ECN by ECE and CWR, a SYN-ACK accepts it by ECE
    /// (RFC 3168, section 6.1.1). A retransmitted SYN does not request it (section 6.1.1.1).
    fn syn_flags(&self, acknowledges: bool, is_first: bool) -> TcpFlags {
        match (acknowledges, self.config.uses_ecn() && is_first) {
            (false, true) => TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR,
            (false, false) => TcpFlags::SYN,
            (true, _) if self.ecn.is_agreed => TcpFlags::SYN | TcpFlags::ACK | TcpFlags::ECE,
            (true, _) => TcpFlags::SYN | TcpFlags::ACK,
        }
    }

    /// Returns the options of a SYN or SYN-ACK. A SYN offers all configured options; a SYN-ACK offers only
    /// the configured options that the peer has offered.
    fn syn_options(&self, now: Instant, acknowledges: bool) -> OptionBytes {
        let offers = |configured: bool, agreed: bool| configured && (agreed || !acknowledges);
        let mut options = OptionBytes::default();
        options.push_maximum_segment_size(self.config.maximum_segment_size);
        let sack = offers(self.config.sack, self.uses_sack);
        let timestamps = offers(self.config.timestamps, self.timestamps.is_agreed);
        match (sack, timestamps) {
            (true, true) => {
                options.push_sack_permitted_and_timestamp(self.timestamps.current(now));
            }
            (true, false) => options.push_sack_permitted(),
            (false, true) => options.push_timestamp(self.timestamps.current(now)),
            (false, false) => {}
        }
        if offers(self.config.window_scaling, self.agreed_on_scaling) {
            options.push_window_scale(self.offered_scale());
        }
        options
    }

    /// Returns a reset, which carries a timestamp if the connection uses them (RFC 7323, section 3.2).
    fn emit_reset(&self, reset: Reset, now: Instant) -> Transmit<'static> {
        Transmit { options: self.options(now), ..reset.transmit() }
    }

    /// Returns the pending ACKs as one transmit. Each ACK contains the values from the
    /// time at which it was queued. `None` if no ACK is pending.
    fn emit_acks(&mut self, now: Instant) -> Option<Transmit<'_>> {
        let (first, sack) = self.acks.take()?;
        self.rcv.record_sent_edge();
        self.update_timers(now);
        let mut options = OptionBytes::default();
        if self.timestamps.is_agreed {
            let value = self.timestamps.clock(now);
            options.push_timestamp(Timestamp { value, echo: first.echo });
        }
        options.push_sack(sack);
        let mark = if first.has_mark { TcpFlags::ECE } else { TcpFlags::default() };
        Some(Transmit {
            seq: self.snd.nxt,
            ack: first.ack,
            flags: TcpFlags::ACK | mark,
            window: first.window,
            options,
            later_acks: self.acks.later(),
            ..Transmit::default()
        })
    }

    /// Returns the options of every segment after the handshake.
    fn options(&self, now: Instant) -> OptionBytes {
        let mut options = OptionBytes::default();
        if self.timestamps.is_agreed {
            options.push_timestamp(self.timestamps.current(now));
        }
        options
    }

    /// Returns a keep-alive probe. Its SEQ has been acknowledged already, so the peer must answer (RFC 9293,
    /// section 3.8.4).
    fn emit_keep_alive(&mut self, now: Instant) -> Outgoing {
        self.keep_alive.is_due = false;
        let segment = self.segment(before(self.snd.nxt, 1), TcpFlags::ACK, now);
        Outgoing { segment, text: (self.snd.nxt, self.snd.nxt) }
    }

    /// Records that the range `start` to `end` is sent, for the reason `why`.
    fn send_text(&mut self, (start, end): Range, why: SendReason, now: Instant) {
        self.congestion.on_sent(now, distance(start, end), self.recovery.in_flight());
        match why {
            SendReason::New | SendReason::Trial => self.send_new((start, end), now),
            SendReason::Lost => self.recovery.sent_again(start, end, now),
            SendReason::TailProbe => {
                self.recovery.sent_again(start, end, now);
                self.recovery.probe_sent_again(self.snd.nxt);
                self.timers.stop(Timer::Retransmit);
            }
            SendReason::WindowProbe => self.send_window_probe((start, end), now),
        }
        self.note_on_path((start, end), why, now);
        self.snd.last_sent_at = now;
        if self.is_peer_done() && self.snd.has_sent_fin() {
            self.state = self.state.after_both_fins();
        }
    }

    fn send_new(&mut self, (start, end): Range, now: Instant) {
        let is_probe = self.recovery.has_probe_due();
        self.recovery.sent(start, end, now);
        self.snd.sent_until(end, now);
        if self.snd.limits_unsent() {
            self.events |= Events::WRITABLE;
        }
        if is_probe {
            self.timers.stop(Timer::Retransmit);
        }
        self.restart_tail_probe(now);
    }

    fn send_window_probe(&mut self, (start, end): Range, now: Instant) {
        self.persist = Persist { probes: self.persist.probes.saturating_add(1), is_due: false };
        let new_from = later(start, self.snd.nxt);
        if new_from.is_before(end) {
            self.recovery.sent(new_from, end, now);
            self.snd.sent_until(end, now);
        }
        if start.is_before(new_from) {
            self.recovery.sent_again(start, new_from, now);
        }
    }

    fn emit_text(&mut self, (start, end): Range, why: SendReason, now: Instant) -> Outgoing {
        let is_new = matches!(why, SendReason::New | SendReason::Trial);
        let carries_fin = self.snd.carries_fin(end);
        let bytes = distance(start, end) - u32::from(carries_fin);
        let fin = if carries_fin { TcpFlags::FIN } else { TcpFlags::default() };
        let empties = end.is_at_or_after(before(self.snd.end(), u32::from(carries_fin)));
        let is_large = bytes > self.snd.mss && why != SendReason::Trial;
        // A receiver that aggregates flushes at PSH and holds without it. No data can follow a GSO frame that
        // exhausts the windows, so it carries PSH as well.
        let ends = empties || is_large && is_new && self.new_text().is_err();
        let psh = if bytes > 0 && ends { TcpFlags::PSH } else { TcpFlags::default() };
        let ecn_flags = self.ecn.flags(is_new && bytes > 0);
        let mut segment = self.segment(start, TcpFlags::ACK | fin | psh | ecn_flags, now);
        segment.ecn = self.ecn.codepoint(is_new && bytes > 0);
        if is_large {
            segment.gso_size = NonZeroU16::new(u16::try_from(self.snd.mss).unwrap_or(u16::MAX));
        }
        let room = self.snd.mss.saturating_sub(bytes);
        if self.uses_sack && room >= LEAST_SACK_BYTES && self.rcv.has_gap() {
            segment.options.push_sack_within(self.rcv.sack_blocks(), room);
        }
        Outgoing { segment, text: (start, end) }
    }

    /// Returns a segment, still without payload, that acknowledges everything received.
    fn segment(&mut self, seq: SeqNumber, flags: TcpFlags, now: Instant) -> Transmit<'static> {
        self.acks.piggyback();
        self.timestamps.last_ack = self.rcv.nxt;
        Transmit {
            seq,
            ack: self.rcv.nxt,
            flags,
            window: self.rcv.window_field(),
            options: self.options(now),
            ..Transmit::default()
        }
    }
}

/// A segment whose data is still in the send buffer.
struct Outgoing {
    segment: Transmit<'static>,
    text: Range,
}
