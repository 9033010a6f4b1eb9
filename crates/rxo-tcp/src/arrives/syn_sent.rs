//! SYN-SENT (RFC 9293, section 3.10.7.3).

use rxo_frame::Instant;
use rxo_wire::TcpFlags;

use crate::segment::Segment;
use crate::state::{SynReceived, SynSent};
use crate::{Connection, Failure, Reset, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// First ACK, second RST, third security (obsolete), fourth SYN, fifth neither.
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

    /// Section 3.5.1, figure 9: the peer still has an old connection with our ports, whose ACK came in place of a
    /// SYN-ACK. Our reset ends it, and the SYN that follows finds a listener.
    fn send_syn_behind_reset(&mut self) {
        if let (Some(_), Some(syn)) = (self.reset, self.state.syn()) {
            syn.begin_anew();
        }
    }

    /// Everything else in a SYN-ACK is processed from the sixth step on.
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

    /// Section 3.5, figure 8: both sides have sent a SYN.
    fn open_simultaneously(&mut self, now: Instant) {
        self.state = State::SynReceived(SynReceived::default());
        self.start_handshake(now);
    }

    /// Samples the first round-trip time if the SYN was sent once (RFC 6298, section 3).
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
