//! The seventh step for an arriving segment: process its data (RFC 9293, section 3.10.7.4).

use crate::receive::Accepted;
use crate::segment::Segment;
use crate::{Connection, Events};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns `true` if data from the peer is accepted: the state allows data, and the peer's FIN has not
    /// been processed.
    pub(crate) fn takes_text(&self) -> bool {
        self.state.takes_text() && !self.is_peer_done()
    }

    /// Accepts the data, in order or not, and marks an ACK as due: at once if a gap must be
    /// reported to the peer (RFC 5681, section 4.2), otherwise for every second full segment.
    pub(super) fn take_text(&mut self, segment: &mut Segment<B>) {
        self.ecn.arrived(segment.ecn, segment.flags);
        let Some(text) = segment.payload.take() else { return };
        if !self.takes_text() {
            return;
        }
        if self.is_abandoned() {
            self.refuse_text();
            return;
        }
        let bytes = text.bytes();
        match self.rcv.accept(segment.seq, text) {
            Accepted::InOrder { beside_a_gap } => {
                self.events |= Events::READABLE;
                if beside_a_gap || self.rcv.sack.has_duplicate() {
                    self.acks.answer_alone();
                } else if self.acks.count(bytes, self.rcv.full_segment()) {
                    self.acks.answer();
                }
            }
            Accepted::OutOfOrder | Accepted::NoRoom => self.acks.answer_alone(),
        }
        self.rcv.drop_fin();
    }
}
