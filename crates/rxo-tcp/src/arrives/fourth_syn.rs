//! The fourth step for an arriving segment: check the SYN bit (RFC 9293, section 3.10.7.4; RFC 5961, section 4).

use core::ops::ControlFlow;

use rxo_frame::Instant;
use rxo_wire::TcpFlags;

use crate::segment::Segment;
use crate::state::SynReceived;
use crate::{Connection, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Answers a SYN on an open connection by a challenge ACK. A peer that has really restarted answers the
    /// challenge by a reset; a forged SYN has no effect.
    pub(super) fn check_syn(&mut self, now: Instant, segment: &Segment<B>) -> ControlFlow<()> {
        if !segment.has(TcpFlags::SYN) || self.opens_simultaneously(segment) {
            return ControlFlow::Continue(());
        }
        match self.state {
            State::SynReceived(SynReceived { is_passive: true, .. }) => self.listen_again(),
            _ => self.challenge(now),
        }
        ControlFlow::Break(())
    }

    /// Returns `true` if `segment` is the SYN-ACK of a simultaneous open (RFC 9293, section 3.5, figure 7).
    /// The peer's SYN is already known, so its ACK opens the connection, as in Linux.
    pub(super) fn opens_simultaneously(&self, segment: &Segment<B>) -> bool {
        let is_active = matches!(self.state, State::SynReceived(state) if !state.is_passive);
        let is_only_syn =
            segment.flags.contains(TcpFlags::SYN | TcpFlags::ACK) && segment.len() == 1;
        is_active && is_only_syn && segment.seq == self.rcv.irs && segment.ack == self.snd.nxt
    }
}
