//! When nobody will read any more: CLOSE of both directions, as an application does that drops its
//! socket.

use rxo_frame::Instant;

use super::Connection;
use crate::state::{Closed, Failure};
use crate::timer::Timer;
use crate::{Reset, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// The application is gone: what it has sent is still delivered, then a FIN. What it has not read,
    /// and what comes later, is lost, and the peer is told so by a reset (RFC 9293, section 3.6.1,
    /// SHLD-3). A peer that does not say FIN is waited for only for [`crate::Config::fin_wait_2`], one that
    /// takes nothing, however often it says so, for [`crate::Config::orphan_timeout`].
    pub fn abandon(&mut self, now: Instant) {
        if self.readable_bytes() > 0 {
            self.abort();
            return;
        }
        // An error says that it was done before, or that there is nothing to be done.
        let _ = self.shutdown();
        self.abandoned_until.get_or_insert(now + self.config.orphan_timeout);
        self.settle(now);
    }

    /// Whether nobody will read any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned_until.is_some()
    }

    /// Text has come that nobody will read.
    pub(crate) fn refuse_text(&mut self) {
        self.reset = Some(Reset::of_connection(self.snd.acceptable(), self.rcv.nxt));
        self.fail(Failure::Aborted);
    }

    /// FIN-WAIT-2 has no end of its own, nor has a window that stays closed.
    pub(super) fn settle_abandoned(&mut self, now: Instant, until: Instant) {
        if !matches!(self.state, State::Closed(_) | State::TimeWait) {
            self.timers.arm(Timer::Orphan, until);
        }
        if self.state == State::FinWait2 {
            self.timers.arm_if_idle(Timer::TimeWait, now + self.config.fin_wait_2);
        }
    }

    /// It has lasted long enough. In FIN-WAIT-2 the peer has everything, and is only not done itself.
    pub(super) fn orphan_timeout(&mut self) {
        if self.state == State::FinWait2 {
            self.time_wait_is_over();
            return;
        }
        if !matches!(self.state, State::SynSent(_)) {
            self.reset = Some(Reset::of_connection(self.snd.acceptable(), self.rcv.nxt));
        }
        self.fail(Failure::TimedOut);
    }

    /// Two segment lifetimes have passed, or the peer's FIN did not come.
    pub(crate) fn time_wait_is_over(&mut self) {
        self.close(Closed { failure: None });
    }
}
