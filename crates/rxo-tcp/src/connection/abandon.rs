//! Orphans: connections whose application has dropped its socket, which closes both directions.

use rxo_frame::Instant;

use super::Connection;
use crate::state::{Closed, Failure};
use crate::timer::Timer;
use crate::{Reset, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes note that the application is gone. Data that it has sent is still delivered, then a FIN. Text
    /// that it has not read, or that comes later, is lost, and a reset tells the peer (RFC 9293, section
    /// 3.6.1, SHLD-3). The connection waits at most [`crate::Config::fin_wait_2`] for the peer's FIN, and at
    /// most [`crate::Config::orphan_timeout`] for a peer that takes no data.
    pub fn abandon(&mut self, now: Instant) {
        if self.readable_bytes() > 0 {
            self.abort();
            return;
        }
        // An error says that the connection was closed before.
        let _ = self.shutdown();
        self.abandoned_until.get_or_insert(now + self.config.orphan_timeout);
        self.update_timers(now);
    }

    /// Whether the application is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned_until.is_some()
    }

    /// Resets the connection because text has come that nobody will read.
    pub(crate) fn refuse_text(&mut self) {
        self.reset = Some(Reset::of_connection(self.reset_seq(), self.rcv.nxt));
        self.fail(Failure::Aborted);
    }

    /// Limits how long an orphan lasts: neither FIN-WAIT-2 nor a closed window ends by itself.
    pub(super) fn update_orphan_timers(&mut self, now: Instant, until: Instant) {
        if !matches!(self.state, State::Closed(_) | State::TimeWait) {
            self.timers.arm(Timer::Orphan, until);
        }
        if self.state == State::FinWait2 {
            self.timers.arm_if_idle(Timer::TimeWait, now + self.config.fin_wait_2);
        }
    }

    /// Ends an orphan that has lasted too long. In FIN-WAIT-2 the peer has received everything, so it is
    /// not reset.
    pub(super) fn orphan_timeout(&mut self) {
        if self.state == State::FinWait2 {
            self.time_wait_is_over();
            return;
        }
        if !matches!(self.state, State::SynSent(_)) {
            self.reset = Some(Reset::of_connection(self.reset_seq(), self.rcv.nxt));
        }
        self.fail(Failure::TimedOut);
    }

    /// Closes the connection after two segment lifetimes, or if the peer's FIN does not come.
    pub(crate) fn time_wait_is_over(&mut self) {
        self.close(Closed { failure: None });
    }
}
