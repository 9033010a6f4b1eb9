//! The steps for a segment that arrives in SYN-SENT (RFC 9293, section 3.10.7.3).

use rxo_frame::Instant;
use rxo_wire::TcpFlags;

use crate::segment::Segment;
use crate::state::{SynReceived, SynSent};
use crate::{Connection, Failure, Reset, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Processes a segment in SYN-SENT: checks the ACK first, RST second, SYN fourth. The third check
    /// (security) is obsolete; a segment with neither SYN nor RST is dropped.
    #[cold]
    pub(super) fn arrives_syn_sent(&mut self, now: Instant, segment: Segment<B>) {
        let has_ack = segment.has(TcpFlags::ACK);
        if has_ack && segment.ack != self.snd.nxt {
            self.reset = Reset::answer(&segment);
            self.send_syn_behind_reset();
            return;
        }
        if segment.has(TcpFlags::RST) {
            if has_ack {
                self.fail(Failure::Refused);
            }
            return;
        }
        if segment.has(TcpFlags::SYN) {
            self.sample_handshake(now, &segment);
            self.take_syn(now, &segment);
            if has_ack {
                self.establish_active(now, segment)
            } else {
                self.open_simultaneously(now)
            }
        }
    }

    /// Schedules the SYN for transmission after a reset (RFC 9293, section 3.5.1, figure 9). The peer still has
    /// an old connection on our ports and has answered the SYN with an ACK instead of a SYN-ACK. Our reset ends
    /// the old connection, so the second SYN reaches a listener.
    fn send_syn_behind_reset(&mut self) {
        if let (Some(_), Some(syn)) = (self.reset, self.state.syn()) {
            syn.begin_anew();
        }
    }

    /// Opens the connection by the SYN-ACK `segment`. Data and FIN in the SYN-ACK are processed by the sixth
    /// step and the steps after it.
    fn establish_active(&mut self, now: Instant, mut segment: Segment<B>) {
        self.establish(now);
        self.acks.answer();
        segment.flags = segment.flags.without(TcpFlags::SYN);
        segment.seq = self.rcv.nxt;
        if !segment.is_empty() {
            self.trim_to_window(&mut segment);
            self.take_content(now, &mut segment);
        }
    }

    /// Enters SYN-RECEIVED because both sides have sent a SYN (RFC 9293, section 3.5, figure 8).
    fn open_simultaneously(&mut self, now: Instant) {
        self.state = State::SynReceived(SynReceived::default());
        self.start_handshake(now);
    }

    /// Takes the first round-trip sample, unless the SYN was retransmitted (RFC 6298, section 3).
    pub(super) fn sample_handshake(&mut self, now: Instant, segment: &Segment<B>) {
        let (State::SynSent(SynSent { syn }) | State::SynReceived(SynReceived { syn, .. })) =
            self.state
        else {
            return;
        };
        if let (Some(sent_at), 0) = (syn.sent_at, syn.retransmissions) {
            self.recovery.rtt.sample(segment.arrived_at.min(now).since(sent_at));
        }
    }
}
