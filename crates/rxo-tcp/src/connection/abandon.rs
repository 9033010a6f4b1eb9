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
    /// SHLD-3). A peer that does not say FIN is waited for only for [`crate::Config::fin_wait_2`].
    pub fn abandon(&mut self, now: Instant) {
        if self.readable_bytes() > 0 {
            self.abort();
            return;
        }
        // An error says that it was done before, or that there is nothing to be done.
        let _ = self.shutdown();
        self.is_abandoned = true;
        self.settle(now);
    }

    /// Text has come that nobody will read.
    pub(crate) fn refuse_text(&mut self) {
        self.reset = Some(Reset::of_connection(self.snd.nxt, self.rcv.nxt));
        self.fail(Failure::Aborted);
    }

    /// FIN-WAIT-2 has no end of its own.
    pub(super) fn settle_abandoned(&mut self, now: Instant) {
        if self.state == State::FinWait2 {
            self.timers.arm_if_idle(Timer::TimeWait, now + self.config.fin_wait_2);
        }
    }

    /// Two segment lifetimes have passed, or the peer's FIN did not come.
    pub(super) fn time_wait_is_over(&mut self) {
        self.close(Closed { failure: None });
    }
}
