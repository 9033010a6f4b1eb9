//! Chooses the next segment to send; `emit.rs` sends it.

use rxo_wire::SeqNumber;

use super::Connection;
use crate::send::{Held, Sizing};
use crate::sequence::{distance, earlier};
use crate::{Reset, State};

/// The next segment to send: the decision, without the segment's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// The next segment is a reset.
    Reset(Reset),
    /// The next segment is our SYN, with an ACK if the peer's SYN has arrived.
    Syn {
        /// `true` if the peer's SYN has arrived.
        acknowledges: bool,
    },
    /// The next segment is an ACK without data, or several.
    Acks,
    /// The next segment carries data, the FIN, or both.
    Text(Range, SendReason),
    /// The next segment is a keep-alive probe.
    KeepAlive,
}

/// A range of sequence numbers: the first number belongs to it, the second does not.
pub(super) type Range = (SeqNumber, SeqNumber);

/// The reason why data is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendReason {
    /// The data is sent for the first time.
    New,
    /// The data is considered lost and is retransmitted.
    Lost,
    /// The data is sent for the first time, in a segment larger than the path is known to carry (path MTU
    /// discovery).
    Trial,
    /// The data is retransmitted as a tail loss probe.
    TailProbe,
    /// The data is sent as a window probe: the peer's window is closed.
    WindowProbe,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns the next segment to send, or the reason why none can be sent.
    pub(super) fn plan(&self) -> Result<Plan, Held> {
        if let Some(reset) = self.reset {
            return Ok(Plan::Reset(reset));
        }
        match self.state {
            State::Closed(_) | State::Listen => return Err(Held::Nothing),
            State::SynSent(state) if state.syn.is_due => {
                return Ok(Plan::Syn { acknowledges: false });
            }
            State::SynReceived(state) if state.syn.is_due => {
                return Ok(Plan::Syn { acknowledges: true });
            }
            State::SynSent(_) => return Err(Held::Nothing),
            _ => {}
        }
        if !self.acks.can_piggyback() {
            return Ok(Plan::Acks);
        }
        self.plan_text().or_else(|held| self.plan_bare(held))
    }

    /// Returns a plan for the most urgent data: lost data, then new data. If no data may be sent, returns the
    /// reason.
    fn plan_text(&self) -> Result<Plan, Held> {
        if !self.state.sends_text() {
            return Err(Held::Nothing);
        }
        if self.recovery.has_lost() {
            return self.lost_or_new_text();
        }
        if let Some(range) = self.trial_bytes.and_then(|bytes| self.trial(bytes)) {
            return Ok(Plan::Text(range, SendReason::Trial));
        }
        match self.new_text() {
            Ok(range) => Ok(Plan::Text(range, SendReason::New)),
            Err(held) if self.recovery.has_probe_due() => {
                let range = self.recovery.probe_range().ok_or(held)?;
                Ok(Plan::Text(range, SendReason::TailProbe))
            }
            Err(held) => Err(held),
        }
    }

    /// Returns a plan for lost data, or the reason why none may be sent. While a timeout may have been
    /// spurious, new data comes first (F-RTO, RFC 5682).
    fn lost_or_new_text(&self) -> Result<Plan, Held> {
        let (prefers_new, waits) = self.recovery.frto_flags();
        let new = if prefers_new { self.new_text() } else { Err(Held::Nothing) };
        match new {
            Ok(range) => Ok(Plan::Text(range, SendReason::New)),
            Err(held) if waits => Err(held),
            Err(_) => self.lost_text().map(|range| Plan::Text(range, SendReason::Lost)),
        }
    }

    /// Returns a plan for a segment without new data: an ACK, a window probe or a keep-alive
    /// probe. If none is due, returns the reason.
    fn plan_bare(&self, held: Held) -> Result<Plan, Held> {
        if self.acks.count_pending() > 0 {
            return Ok(Plan::Acks);
        }
        if self.persist.is_due && self.state.sends_text() {
            return self
                .window_probe()
                .map(|range| Plan::Text(range, SendReason::WindowProbe))
                .ok_or(held);
        }
        if self.keep_alive.is_due && self.state.is_synchronized() {
            return Ok(Plan::KeepAlive);
        }
        Err(held)
    }

    /// Returns the first lost range of data, as far as the congestion window and the peer's window allow. If
    /// no data may be sent, returns the reason.
    fn lost_text(&self) -> Result<Range, Held> {
        let mss = self.snd.mss;
        let allowed = self.allowed();
        let full = allowed.min(self.large_send_bytes.max(mss)) / mss * mss;
        let (start, end) = self.recovery.first_lost(full.max(mss)).ok_or(Held::Nothing)?;
        let end = earlier(end, self.snd.una + self.snd.wnd);
        if !start.is_before(end) {
            return Err(Held::ByWindow);
        }
        let may_exceed = self.recovery.is_urgent() || self.recovery.in_flight() == 0;
        if distance(start, end) > allowed && !may_exceed {
            return Err(Held::ByCongestion);
        }
        Ok((start, end))
    }

    /// Returns the range of a path MTU probe of `bytes` bytes, larger than the path is known to carry; `None`
    /// if the probe may not be sent now.
    fn trial(&self, bytes: u32) -> Option<Range> {
        let sizing = self.sizing();
        let room = sizing.unsent.min(sizing.usable).min(sizing.allowed);
        let may_leave = room >= bytes && self.recovery.has_room() && !self.terms.owner_sends();
        may_leave.then(|| (self.snd.nxt, self.snd.nxt + bytes))
    }

    /// Returns the range of the next new data, as far as the congestion window and the peer's window allow.
    /// If no data may be sent, returns the reason.
    pub(super) fn new_text(&self) -> Result<Range, Held> {
        if self.terms.owner_sends() {
            return Err(Held::Nothing);
        }
        let mut sizing = self.sizing();
        if self.recovery.has_probe_due() {
            // A probe may exceed the congestion window by one segment (RFC 8985, section 7.3), because it
            // provokes the ACK that would open the window.
            sizing.nagle = false;
            sizing.allowed = sizing.allowed.max(self.snd.mss);
            sizing.large_send = self.snd.mss;
        }
        let bytes = sizing.next_send()?;
        if !self.recovery.has_room() {
            return Err(Held::ByCongestion);
        }
        Ok((self.snd.nxt, self.snd.nxt + bytes))
    }

    fn sizing(&self) -> Sizing {
        // A FIN alone uses no part of the congestion window, which counts data (RFC 5681, section 2).
        let is_bare_fin = self.snd.unsent() == 1 && self.ends_with_fin();
        Sizing {
            unsent: self.snd.unsent(),
            usable: self.snd.usable(),
            allowed: self.allowed().max(u32::from(is_bare_fin)),
            mss: self.snd.mss,
            max_window: self.snd.max_wnd,
            large_send: self.large_send_bytes,
            is_outstanding: self.snd.outstanding() > 0,
            nagle: self.config.nagle && !self.ends_with_fin(),
        }
    }

    /// Returns `true` if the last segment carries a FIN. Such a segment does not wait for more data.
    fn ends_with_fin(&self) -> bool {
        self.snd.carries_fin(self.snd.end())
    }

    fn allowed(&self) -> u32 {
        self.congestion.allowed(self.recovery.in_flight())
    }

    /// Returns `true` if only the peer's window blocks data and the window must be probed: it is closed, or no
    /// data is outstanding whose ACK could open it.
    pub(super) fn is_held_by_window(&self) -> bool {
        if self.snd.wnd == 0 {
            return true;
        }
        let is_outstanding = self.snd.outstanding() > 0;
        !is_outstanding && self.sizing().next_send() == Err(Held::ByWindow)
    }

    /// Returns the range of a window probe: at least one byte whatever the window (RFC 9293, section 3.8.6.1,
    /// MUST-36), and in a small window as much as fits (section 3.8.6.2.1, rule 4). `None` if there is no
    /// data or FIN to send.
    fn window_probe(&self) -> Option<Range> {
        let start = self.snd.una;
        let bytes = self.snd.wnd.clamp(1, self.snd.mss);
        let end = earlier(self.snd.end(), start + bytes);
        start.is_before(end).then_some((start, end))
    }
}
