//! Orphans: connections whose application has dropped its socket, which closes both directions.

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use super::Connection;
use crate::state::{Closed, Failure};
use crate::timer::Timer;
use crate::{Reset, State};

/// The time limit of an orphan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abandoned {
    /// The time at which the orphan is closed, unless the peer has acknowledged enough data since the limit was set.
    until: Instant,
    /// SND.UNA, the oldest unacknowledged sequence number, when the limit was set.
    una: SeqNumber,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Records that the application is gone. If received data is unread, drops all data and resets the
    /// connection; data that arrives later causes a reset, too (RFC 9293, section 3.6.1, SHLD-3). Otherwise
    /// data in the send buffer is still delivered, then a FIN. The connection waits at most
    /// [`crate::Config::fin_wait_2`] for the peer's FIN, and [`crate::Config::orphan_timeout`] for the peer to
    /// acknowledge data.
    pub fn abandon(&mut self, now: Instant) {
        if self.readable_bytes() > 0 {
            self.abort();
            return;
        }
        // An error means that the connection was closed before.
        let _ = self.shutdown();
        if self.abandoned.is_none() {
            self.wait_as_orphan(now);
        }
        self.update_timers(now);
    }

    fn wait_as_orphan(&mut self, now: Instant) {
        let until = now + self.config.orphan_timeout;
        self.abandoned = Some(Abandoned { until, una: self.snd.una });
    }

    /// Returns `true` if the application is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.is_some()
    }

    /// Resets the connection because data has arrived that no application will read.
    pub(crate) fn refuse_text(&mut self) {
        self.reset = Some(Reset::of_connection(self.reset_seq(), self.rcv.nxt));
        self.fail(Failure::Aborted);
    }

    /// Starts the timers of an orphan, because neither FIN-WAIT-2 nor a closed window ends by itself.
    pub(super) fn update_orphan_timers(&mut self, now: Instant, abandoned: Abandoned) {
        if !matches!(self.state, State::Closed(_) | State::TimeWait) {
            self.timers.arm(Timer::Orphan, abandoned.until);
        }
        if self.state == State::FinWait2 {
            self.timers.arm_if_idle(Timer::TimeWait, now + self.config.fin_wait_2);
        }
    }

    /// Ends an orphan whose peer acknowledged too little data in the last [`crate::Config::orphan_timeout`];
    /// otherwise starts the timeout again. In FIN-WAIT-2 the peer has received everything, so the connection is
    /// closed without a reset.
    pub(super) fn orphan_timeout(&mut self, now: Instant) {
        if self.state == State::FinWait2 {
            self.time_wait_is_over();
            return;
        }
        if self.abandoned.is_some_and(|it| self.snd.una - it.una >= LEAST_TAKEN) {
            self.wait_as_orphan(now);
            return;
        }
        if !matches!(self.state, State::SynSent(_)) {
            self.reset = Some(Reset::of_connection(self.reset_seq(), self.rcv.nxt));
        }
        self.fail(Failure::TimedOut);
    }

    /// Closes the connection after two segment lifetimes in TIME-WAIT, or if the peer's FIN does not come in
    /// FIN-WAIT-2.
    pub(crate) fn time_wait_is_over(&mut self) {
        self.close(Closed { failure: None });
    }
}

/// The minimum number of bytes that a peer must acknowledge to an orphan within one timeout: less than any
/// usable path carries in two minutes. With a limit of one byte, an orphan could last a week.
const LEAST_TAKEN: i32 = 64 << 10;
