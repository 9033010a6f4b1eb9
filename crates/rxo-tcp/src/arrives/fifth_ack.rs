//! The fifth step for an arriving segment: check the ACK field (RFC 9293, section 3.10.7.4; RFC 5961, section 5).

use core::ops::ControlFlow;

use rxo_frame::Instant;
use rxo_wire::{SeqNumber, TcpFlags};

use crate::recovery::AckEvent;
use crate::segment::Segment;
use crate::send::Fin;
use crate::sequence::distance;
use crate::{Connection, Events, Reset, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Applies the ACK of a segment. Drops a segment without ACK or with an invalid ACK number.
    pub(super) fn check_ack(&mut self, now: Instant, segment: &Segment<B>) -> ControlFlow<()> {
        if !segment.has(TcpFlags::ACK) {
            return ControlFlow::Break(());
        }
        if matches!(self.state, State::SynReceived(_)) {
            self.complete_handshake(now, segment)?;
        }
        let ack = self.ack_of_own_text(segment.ack, now);
        if !self.snd.may_be_acknowledged(ack) {
            self.challenge(now);
            return ControlFlow::Break(());
        }
        if ack.is_at_or_after(self.snd.una) {
            self.take_ack(now, segment, ack);
        }
        self.follow_our_fin(now)
    }

    fn complete_handshake(&mut self, now: Instant, segment: &Segment<B>) -> ControlFlow<()> {
        if segment.ack != self.snd.nxt {
            self.reset = Reset::answer(segment);
            return ControlFlow::Break(());
        }
        self.sample_handshake(now, segment);
        if segment.has(TcpFlags::SYN) && self.state.syn().is_some_and(|syn| syn.is_due) {
            // Our SYN-ACK has not left yet, and the peer waits for the ACK in it.
            self.acks.answer();
        }
        self.establish(now);
        self.snd.set_window(segment.seq, segment.ack, self.window_of(segment));
        ControlFlow::Continue(())
    }

    /// Returns the window of `segment` in bytes. The window of a SYN is never scaled (RFC 7323, section 2.2).
    fn window_of(&self, segment: &Segment<B>) -> u32 {
        let scale = if segment.has(TcpFlags::SYN) { 0 } else { self.snd.scale };
        u32::from(segment.window) << scale
    }

    fn take_ack(&mut self, now: Instant, segment: &Segment<B>, ack: SeqNumber) {
        // The window counts from SEG.ACK, which may lie beyond `ack` and what this side has sent.
        let window = self.window_of(segment) + distance(ack, segment.ack);
        let is_new = ack != self.snd.una;
        // The answer to a tail loss probe may come after all data is acknowledged, as a duplicate ACK or
        // D-SACK.
        let is_watched = self.snd.outstanding() > 0 || self.recovery.has_probe_out();
        if is_watched || !segment.options.sack.is_empty() {
            let repeats = is_watched && !is_new && window == self.snd.wnd;
            self.recover(now, segment, ack, repeats);
        }
        if is_new {
            self.snd.acknowledge(ack);
            self.events |= Events::WRITABLE;
            self.follow_path();
            self.made_progress(now);
        }
        self.snd.update_window(segment.seq, ack, window);
    }

    fn recover(&mut self, now: Instant, segment: &Segment<B>, ack: SeqNumber, repeats: bool) {
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        if self.ecn.is_agreed && segment.has(TcpFlags::ECE) {
            self.recovery.on_ecn_echo(una, nxt, &mut self.congestion);
        }
        let timestamp = segment.options.timestamp;
        let event = AckEvent {
            now,
            arrived_at: segment.arrived_at.min(now),
            ack,
            nxt,
            is_duplicate: repeats && segment.is_empty(),
            sack: &segment.options.sack,
            echoed: timestamp.and_then(|timestamp| self.timestamps.echoed(timestamp.echo, now)),
        };
        self.recovery.on_ack(&event, &mut self.congestion);
        self.note_reduction();
    }

    fn follow_our_fin(&mut self, now: Instant) -> ControlFlow<()> {
        if self.snd.fin != Fin::Acknowledged {
            return ControlFlow::Continue(());
        }
        let next = self.state.after_fin_acknowledged();
        if next == self.state {
            // An ACK in TIME-WAIT does not restart the TIME-WAIT timer.
            return ControlFlow::Continue(());
        }
        self.free_sending();
        match next {
            State::Closed(closed) => {
                self.close(closed);
                return ControlFlow::Break(());
            }
            State::TimeWait => self.enter_time_wait(now),
            next => self.state = next,
        }
        ControlFlow::Continue(())
    }
}
