//! Path MTU discovery and ICMP errors: the reports of routers about this connection's segments, and the
//! fallback if routers report nothing.

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use super::Connection;
use super::plan::{Range, SendReason};
use crate::options::TIMESTAMP_BYTES;
use crate::path::{LEAST_MTU_V4, LEAST_MTU_V6, Path, ReportVerdict, TRY_AGAIN_AFTER};
use crate::sequence::distance;
use crate::state::Failure;
use crate::{Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Applies a router's report that the segment with the sequence number `seq` was too large for the path,
    /// and that IP packets of `mtu` bytes pass (RFC 1191, 8201). Such reports can be forged, so a report counts
    /// only if `seq` is in flight and `mtu` is plausible (RFC 5927, sections 4.1 and 7.2). If segments of this
    /// size have passed before, the report waits until the segment at `seq` times out. Data that does not fit
    /// is retransmitted in smaller segments, one at a time until one is acknowledged (RFC 1191, section 6.5).
    pub fn on_packet_too_big(&mut self, now: Instant, seq: SeqNumber, mtu: u32) {
        let Some(mss) = self.mss_within(mtu).filter(|_| self.is_in_flight(seq)) else {
            self.path.counts.too_big_ignored += 1;
            return;
        };
        if let ReportVerdict::Applied(mss) = self.path.judge(seq, mss, self.snd.mss) {
            self.apply_mss(mss, now);
            self.update_timers(now);
        }
    }

    /// Applies a report, by a router or the peer's host, that the segment with the sequence number
    /// `seq` did not arrive. `is_hard` means that later segments will not arrive either. A hard error ends a
    /// connection that is opening. An open connection continues, because an attacker could have sent the
    /// report (RFC 9293, section 3.9.2.2, MUST-56; RFC 5461; RFC 5927, section 5.2); [`Events::UNREACHABLE`]
    /// notifies the application.
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

    /// Records that the next hop does not answer on this link. This ends a connection that is opening. An
    /// open connection continues until its timers end it, because the cause may be temporary.
    pub fn on_no_neighbour(&mut self) {
        if matches!(self.state, State::SynSent(_)) {
            self.fail(Failure::Unreachable);
        }
    }

    /// Returns the largest IP packet that the path is known to carry, in bytes; `None` if the path carries
    /// segments of the size that the handshake allowed. An unconfirmed guess does not count.
    /// [`Events::PATH_CHANGED`] reports a change.
    #[must_use]
    pub fn path_mtu(&self) -> Option<u32> {
        self.path.is_smaller_than_full(self.snd.mss).then(|| self.snd.mss + self.headers())
    }

    /// Limits IP packets to `mtu` bytes, a path MTU that is known from another connection or configured (RFC
    /// 1191, section 6.2; RFC 8201, section 5.2). A larger segment is tried at `try_at`.
    pub fn know_path(&mut self, mtu: u32, try_at: Instant) {
        self.known_path = Some(KnownPath { mtu, try_at });
        if self.state.is_synchronized() {
            self.begin_on_known_path();
            self.use_mss(self.snd.mss);
        }
    }

    /// Lowers the segment size to the known path MTU, if the handshake has allowed a larger size.
    pub(crate) fn begin_on_known_path(&mut self) {
        let Some(KnownPath { mtu, try_at }) = self.known_path else { return };
        let mss = mtu.saturating_sub(self.headers()).max(LEAST_MSS);
        if mss < self.snd.mss {
            self.path.lowered(mss, try_at);
            self.snd.mss = mss;
        }
    }

    /// Returns `true` if `seq` is in flight (RFC 5927, section 4.1).
    fn is_in_flight(&self, seq: SeqNumber) -> bool {
        let is_out = seq.is_at_or_after(self.snd.una) && seq.is_before(self.snd.nxt);
        is_out && !matches!(self.state, State::Closed(_) | State::Listen)
    }

    /// Returns the largest payload of a segment in an IP packet of `mtu` bytes. Returns `None` if `mtu` is below
    /// the IPv6 minimum. For IPv4, a value below the size that every host accepts counts as that size.
    fn mss_within(&self, mtu: u32) -> Option<u32> {
        if !self.state.is_synchronized() {
            return None;
        }
        if self.pair.source().is_ipv4() {
            return Some(mtu.max(LEAST_MTU_V4) - self.headers());
        }
        (mtu >= LEAST_MTU_V6).then(|| mtu - self.headers())
    }

    /// Returns the length of the IP and TCP headers in bytes, including the options of every segment.
    fn headers(&self) -> u32 {
        self.fixed_headers() + if self.timestamps.is_agreed { TIMESTAMP_BYTES } else { 0 }
    }

    fn fixed_headers(&self) -> u32 {
        if self.pair.source().is_ipv4() { 40 } else { 60 }
    }

    fn apply_mss(&mut self, mss: u32, now: Instant) {
        self.path.counts.too_big_taken += 1;
        self.events |= Events::PATH_CHANGED;
        self.path.lowered(mss, now + TRY_AGAIN_AFTER);
        self.use_mss(mss);
        self.recovery.on_packet_too_big(self.snd.nxt, &mut self.congestion);
    }

    /// Reacts to a retransmission timeout. A router's report that waited for the timeout is applied now.
    /// Without a report, repeated timeouts show a path that silently drops full segments.
    pub(super) fn apply_waiting_report(&mut self, now: Instant) {
        if let Some(mss) = self.path.timed_out(self.snd.mss) {
            self.apply_mss(mss, now);
            self.congestion.set_cwnd(mss);
            return;
        }
        let times = self.recovery.rtt.backed_off();
        let is_time = times >= TIMEOUTS_OF_A_BLACK_HOLE && times % 2 == 1;
        let is_full = self.snd.outstanding() >= self.snd.mss;
        let smaller =
            Path::next_smaller(self.snd.mss, self.headers(), self.pair.source().is_ipv4());
        // If the owner sends the segments, they serve many peers: one unresponsive peer must not make all
        // segments smaller.
        let may_doubt = is_time && is_full && !self.terms.owner_has_sent();
        if let Some(mss) = smaller.filter(|_| may_doubt) {
            self.path.counts.black_holes += 1;
            // The peer may have been unreachable for segments of any size: as soon as one arrives, a full
            // segment is tried.
            self.path.lowered(mss, now);
            self.use_mss(mss);
            self.congestion.set_cwnd(mss);
        }
    }

    /// Notifies path MTU discovery that all data before SND.UNA has arrived.
    pub(crate) fn follow_path(&mut self) {
        if self.path.is_watching()
            && let Some(mss) = self.path.acknowledged(self.snd.una)
        {
            self.events |= Events::PATH_CHANGED;
            self.use_mss(mss);
        }
    }

    /// Notifies path MTU discovery that the range `start` to `end` is being sent, for the reason `why`.
    pub(super) fn note_on_path(&mut self, (start, end): Range, why: SendReason, now: Instant) {
        match why {
            SendReason::New if distance(start, end) >= self.snd.mss => {
                self.path.sent(start, self.snd.mss);
            }
            SendReason::New => {}
            SendReason::Trial => self.path.trial_sent(start, distance(start, end)),
            SendReason::Lost | SendReason::TailProbe | SendReason::WindowProbe => {
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

/// The path MTU that was known before the connection opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownPath {
    mtu: u32,
    try_at: Instant,
}

/// The smallest payload of a segment, in bytes: in a smaller segment the headers would be longer than the
/// payload.
const LEAST_MSS: u32 = 48;
/// The number of timeouts in a row after which the segment size is lowered (R1 of RFC 9293, section 3.8.3).
/// After that, every second timeout lowers the size again.
const TIMEOUTS_OF_A_BLACK_HOLE: u32 = 3;
