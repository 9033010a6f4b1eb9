//! Seventh, process the segment text (RFC 9293, section 3.10.7.4).

use crate::receive::Accepted;
use crate::segment::Segment;
use crate::{Connection, Events};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes the text, in order or not, and owes the acknowledgement: at once when the peer must
    /// learn of a gap (RFC 5681, section 4.2), else for each second full segment.
    pub(super) fn take_text(&mut self, segment: &mut Segment<B>) {
        self.ecn.arrived(segment.ecn, segment.flags);
        let Some(text) = segment.payload.take() else { return };
        if !self.state.takes_text() {
            return;
        }
        if self.is_abandoned {
            self.refuse_text();
            return;
        }
        let bytes = text.bytes();
        match self.rcv.accept(segment.seq, text) {
            Accepted::InOrder { beside_a_gap } => {
                self.events |= Events::READABLE;
                if beside_a_gap || self.rcv.sack.has_duplicate() {
                    self.acks.owe_alone(self.rcv.nxt);
                } else {
                    self.acks.count(bytes, self.rcv.full_segment(), self.rcv.nxt);
                }
            }
            Accepted::OutOfOrder | Accepted::NoRoom => self.acks.owe_alone(self.rcv.nxt),
        }
    }
}
