//! The steps for a segment that arrives in LISTEN (RFC 9293, section 3.10.7.2).

use rxo_frame::Instant;
use rxo_wire::TcpFlags;

use crate::segment::Segment;
use crate::state::SynReceived;
use crate::{Connection, Reset, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Processes a segment in LISTEN: checks RST first, ACK second, SYN third. Data and FIN in a SYN are not
    /// acknowledged, so the peer sends them again.
    pub(super) fn arrives_listen(&mut self, now: Instant, segment: &Segment<B>) {
        if segment.has(TcpFlags::RST) {
            return;
        }
        if segment.has(TcpFlags::ACK) {
            self.reset = Reset::answer(segment);
            return;
        }
        if segment.has(TcpFlags::SYN) {
            self.choose_iss(now);
            self.take_syn(now, segment);
            let state = SynReceived { is_passive: true, ..SynReceived::default() };
            self.state = State::SynReceived(state);
            self.start_handshake(now);
        }
    }
}
