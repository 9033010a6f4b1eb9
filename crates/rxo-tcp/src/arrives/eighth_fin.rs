//! The eighth step for an arriving segment: check the FIN bit (RFC 9293, section 3.10.7.4).

use rxo_frame::Instant;
use rxo_wire::{SeqNumber, TcpFlags};

use crate::segment::Segment;
use crate::{Connection, Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns the sequence number of the FIN of `segment`, or `None` if it has no FIN or this side no longer
    /// accepts data.
    pub(super) fn fin_of(&self, segment: &Segment<B>) -> Option<SeqNumber> {
        let has_fin = segment.has(TcpFlags::FIN) && self.takes_text();
        has_fin.then(|| segment.seq + segment.text_bytes())
    }

    /// Processes the peer's FIN once all data before it has arrived. A FIN that arrives out of order is
    /// stored by its sequence number.
    pub(super) fn check_fin(&mut self, now: Instant, fin_at: Option<SeqNumber>) {
        if let Some(at) = fin_at {
            // A FIN that came out of order is answered at once, like data (RFC 5681, section 4.2).
            self.acks.answer_alone();
            self.rcv.expect_fin(at);
        }
        if self.rcv.fin_at() != Some(self.rcv.nxt) || !self.takes_text() {
            return;
        }
        self.rcv.nxt = self.rcv.nxt + 1;
        self.acks.answer_alone();
        self.events |= Events::PEER_DONE;
        self.free_receiving();
        match self.state.after_fin_received(self.snd.has_sent_fin()) {
            State::TimeWait => self.enter_time_wait(now),
            next => self.state = next,
        }
    }
}
