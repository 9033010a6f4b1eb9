//! The second step for an arriving segment: check the RST bit (RFC 9293, section 3.10.7.4; RFC 5961, section 3).

use core::ops::ControlFlow;

use rxo_frame::Instant;
use rxo_wire::TcpFlags;

use crate::challenge::Answer;
use crate::segment::Segment;
use crate::state::{Closed, SynReceived};
use crate::{Connection, Failure, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Accepts a reset only if its sequence number is RCV.NXT. A reset elsewhere in the window may be
    /// guessed, so it is answered by a challenge ACK.
    pub(super) fn check_reset(&mut self, now: Instant, segment: &Segment<B>) -> ControlFlow<()> {
        if !segment.has(TcpFlags::RST) {
            return ControlFlow::Continue(());
        }
        if segment.seq == self.rcv.nxt {
            self.was_reset();
        } else {
            self.challenge(now);
        }
        ControlFlow::Break(())
    }

    fn was_reset(&mut self) {
        match self.state {
            State::SynReceived(SynReceived { is_passive: true, .. }) => self.listen_again(),
            State::SynReceived(_) => self.fail(Failure::Refused),
            State::TimeWait => self.close(Closed { failure: None }),
            // The peer has received all data, and lacks only this side's FIN: no data is lost.
            State::Closing | State::LastAck if self.unacknowledged_bytes() == 0 => {
                self.close(Closed { failure: None });
            }
            _ => self.fail(Failure::Reset),
        }
    }

    /// Marks a challenge ACK as due (RFC 5961), at a limited rate.
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.challenges.may_send(Answer::Challenge, now) {
            self.acks.answer_alone();
        }
    }
}
