//! Eighth, check the FIN bit (RFC 9293, section 3.10.7.4).

use core::ops::ControlFlow;

use rxo_frame::Instant;
use rxo_wire::{SeqNumber, TcpFlags};

use crate::segment::Segment;
use crate::{Connection, Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Where the FIN of `segment` stands, if it has one.
    pub(super) fn fin_of(&self, segment: &Segment<B>) -> Option<SeqNumber> {
        let has_fin = segment.has(TcpFlags::FIN) && self.state.takes_text();
        has_fin.then(|| segment.seq + segment.text_bytes())
    }

    /// Processes the peer's FIN once all before it is here; one that came out of order is
    /// remembered.
    pub(super) fn check_fin(&mut self, now: Instant, fin_at: Option<SeqNumber>) -> ControlFlow<()> {
        self.rcv.fin_at = self.rcv.fin_at.or(fin_at);
        if fin_at.is_some_and(|at| at != self.rcv.nxt) {
            // It overtook something, as text does (RFC 5681, section 4.2).
            self.acks.owe_alone(self.rcv.nxt);
        }
        if !self.state.takes_text() || self.rcv.fin_at != Some(self.rcv.nxt) {
            return ControlFlow::Continue(());
        }
        self.rcv.nxt = self.rcv.nxt + 1;
        self.acks.owe_alone(self.rcv.nxt);
        self.events |= Events::PEER_DONE;
        self.give_back_receiving();
        match self.state.after_fin_received() {
            State::TimeWait => self.enter_time_wait(now),
            next => self.state = next,
        }
        ControlFlow::Continue(())
    }
}
