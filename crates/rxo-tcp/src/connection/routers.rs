//! What routers say about this connection's segments, as ICMP brings it; and doing without them.

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use super::Connection;
use super::plan::{Range, Why};
use crate::options::TIMESTAMP_BYTES;
use crate::path::{Judgement, LEAST_MTU_V4, LEAST_MTU_V6, Path, TRY_AGAIN_AFTER};
use crate::sequence::distance;
use crate::state::Failure;
use crate::{Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// A router says that the segment with the sequence number `seq` did not pass, and that IP
    /// packets of `mtu` bytes do (RFC 1191, 8201). Anybody can say that, so it counts only when
    /// `seq` is in flight and `mtu` can be (RFC 5927, sections 4.1 and 7.2); when segments of this size
    /// have passed before, not before that segment has timed out. What does not fit is sent again in
    /// smaller segments, one until it is acknowledged (RFC 1191, section 6.5).
    pub fn on_packet_too_big(&mut self, now: Instant, seq: SeqNumber, mtu: u32) {
        let Some(mss) = self.mss_within(mtu).filter(|_| self.is_in_flight(seq)) else {
            self.path.counts.too_big_ignored += 1;
            return;
        };
        if let Judgement::Believed(mss) = self.path.judge(seq, mss, self.snd.mss) {
            self.believe(mss, now);
            self.settle(now);
        }
    }

    /// A router, or the peer's host, says that the segment with the sequence number `seq` did not
    /// arrive; `is_hard` when it says that none will. While the connection opens, a hard error ends
    /// it; later none does, because an attacker could send it (RFC 9293, section 3.9.2.2, MUST-56;
    /// RFC 5461; RFC 5927, section 5.2): [`Events::UNREACHABLE`] tells the application.
    pub fn on_unreachable(&mut self, seq: SeqNumber, is_hard: bool) {
        if !self.is_in_flight(seq) {
            return;
        }
        self.path.counts.unreachable += 1;
        self.events |= Events::UNREACHABLE;
        if is_hard && matches!(self.state, State::SynSent(_)) {
            self.fail(Failure::Refused);
        }
    }

    /// Nobody on this link has the next hop's address. While the connection opens this ends it; later
    /// it may be for a moment, and the timers say how long that is borne.
    pub fn on_no_neighbour(&mut self) {
        if matches!(self.state, State::SynSent(_)) {
            self.fail(Failure::Unreachable);
        }
    }

    /// The largest IP packet that the path takes, as far as is known, in bytes; `None` when it takes all
    /// that the handshake allowed. A guess that nothing has confirmed does not count:
    /// [`Events::PATH_CHANGED`] says when it is worth asking.
    #[must_use]
    pub fn path_mtu(&self) -> Option<u32> {
        self.path.is_smaller_than_full(self.snd.mss).then(|| self.snd.mss + self.headers())
    }

    /// The path is known to take IP packets of at most `mtu` bytes, from another connection or by
    /// configuration (RFC 1191, section 6.2; RFC 8201, section 5.2): no segment is larger, until a
    /// larger one is tried at `try_at`.
    pub fn know_path(&mut self, mtu: u32, try_at: Instant) {
        self.known_path = Some(KnownPath { mtu, try_at });
        if self.state.is_synchronized() {
            self.begin_on_known_path();
            self.use_mss(self.snd.mss);
        }
    }

    /// The handshake has settled how large a segment may be; the path may take less.
    pub(crate) fn begin_on_known_path(&mut self) {
        let Some(KnownPath { mtu, try_at }) = self.known_path else { return };
        let mss = mtu.saturating_sub(self.headers()).max(LEAST_MSS);
        if mss < self.snd.mss {
            self.path.lowered(mss, try_at);
            self.snd.mss = mss;
        }
    }

    /// RFC 5927, section 4.1.
    fn is_in_flight(&self, seq: SeqNumber) -> bool {
        let is_out = seq.is_at_or_after(self.snd.una) && seq.is_before(self.snd.nxt);
        is_out && !matches!(self.state, State::Closed(_) | State::Listen)
    }

    /// The payload of a segment in an IP packet of `mtu` bytes. `None` when no link has so small an
    /// MTU; for IPv4 what every host takes is the least.
    fn mss_within(&self, mtu: u32) -> Option<u32> {
        if !self.state.is_synchronized() {
            return None;
        }
        if self.pair.source().is_ipv4() {
            return Some(mtu.max(LEAST_MTU_V4) - self.headers());
        }
        (mtu >= LEAST_MTU_V6).then(|| mtu - self.headers())
    }

    /// What IP and TCP take of each packet, the options of every segment included.
    fn headers(&self) -> u32 {
        self.fixed_headers() + if self.timestamps.is_agreed { TIMESTAMP_BYTES } else { 0 }
    }

    fn fixed_headers(&self) -> u32 {
        if self.pair.source().is_ipv4() { 40 } else { 60 }
    }

    fn believe(&mut self, mss: u32, now: Instant) {
        self.path.counts.too_big_taken += 1;
        self.events |= Events::PATH_CHANGED;
        self.path.lowered(mss, now + TRY_AGAIN_AFTER);
        self.use_mss(mss);
        self.recovery.on_packet_too_big(self.snd.nxt, &mut self.congestion);
    }

    /// The retransmission timer has fired: a router's word that waited is believed now; without one,
    /// a path that swallows full segments in silence shows itself by timeouts alone.
    pub(super) fn doubt_path(&mut self, now: Instant) {
        if let Some(mss) = self.path.timed_out(self.snd.mss) {
            self.believe(mss, now);
            self.congestion.set_cwnd(mss);
            return;
        }
        let times = self.recovery.rtt.backed_off();
        let is_time = times >= TIMEOUTS_OF_A_BLACK_HOLE && times % 2 == 1;
        let is_full = self.snd.outstanding() >= self.snd.mss;
        let smaller =
            Path::next_smaller(self.snd.mss, self.headers(), self.pair.source().is_ipv4());
        if let Some(mss) = smaller.filter(|_| is_time && is_full) {
            self.path.counts.black_holes += 1;
            // Perhaps nothing passed at all: once something does, a full segment is tried at once.
            self.path.lowered(mss, now);
            self.use_mss(mss);
            self.congestion.set_cwnd(mss);
        }
    }

    /// Everything before SND.UNA has arrived.
    pub(crate) fn follow_path(&mut self) {
        if self.path.is_watching()
            && let Some(mss) = self.path.acknowledged(self.snd.una)
        {
            self.events |= Events::PATH_CHANGED;
            self.use_mss(mss);
        }
    }

    /// `range` is on its way.
    pub(super) fn note_on_path(&mut self, (start, end): Range, why: Why, now: Instant) {
        match why {
            Why::New if distance(start, end) >= self.snd.mss => {
                self.path.sent(start, self.snd.mss);
            }
            Why::New => {}
            Why::Trial => self.path.trial_sent(start, distance(start, end)),
            Why::Lost | Why::TailProbe | Why::WindowProbe => {
                if self.path.sent_again(start, end, now) {
                    self.events |= Events::PATH_CHANGED;
                }
            }
        }
    }

    fn use_mss(&mut self, mss: u32) {
        self.snd.mss = mss;
        self.recovery.set_mss(mss);
        self.congestion.set_mss(mss);
    }
}

/// What a connection knew of its path before it was open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownPath {
    mtu: u32,
    try_at: Instant,
}

/// Less makes more headers than text.
const LEAST_MSS: u32 = 48;
/// As many as RFC 9293, section 3.8.3 calls R1; then after each second one more.
const TIMEOUTS_OF_A_BLACK_HOLE: u32 = 3;
