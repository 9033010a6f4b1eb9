//! The timers of a connection, in one table.

use rxo_frame::Instant;

/// A timer of a connection. At most one timer of each kind runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Fires when no new data was acknowledged for a retransmission timeout (RFC 6298).
    Retransmit,
    /// Fires when the peer's window has blocked data for so long that it must be probed (RFC 9293, section
    /// 3.8.6.1).
    Persist,
    /// Fires when the last segments sent have not been acknowledged for about two round trips (RFC 8985,
    /// section 7).
    TailLoss,
    /// Fires when a segment that later ones have overtaken counts as lost (RFC 8985, section 6.2).
    Reorder,
    /// Fires when pacing permits more of the congestion window to be used.
    Pace,
    /// Fires when a delayed ACK is due (RFC 9293, section 3.8.6.3).
    DelayedAck,
    /// Fires when an idle peer must be probed (RFC 9293, section 3.8.4).
    KeepAlive,
    /// Fires when the connection fails for lack of progress (RFC 9293, section 3.8.3: R2).
    GiveUp,
    /// Fires when the time limit of an orphan has passed.
    Orphan,
    /// Fires when the socket pair of a connection in TIME-WAIT may be reused (RFC 9293, section 3.3.2: 2
    /// MSL).
    TimeWait,
}

impl Timer {
    const COUNT: usize = 10;
    /// All timers. If several are due together, they fire in this order: a probe before the retransmission
    /// timeout.
    const ALL: [Self; Self::COUNT] = [
        Self::TailLoss,
        Self::Retransmit,
        Self::Persist,
        Self::Reorder,
        Self::Pace,
        Self::DelayedAck,
        Self::KeepAlive,
        Self::GiveUp,
        Self::Orphan,
        Self::TimeWait,
    ];
}

/// The time at which each timer fires, or [`NEVER`] if it does not run. Thus no branch is needed to stop a
/// timer or to find the first timer to fire.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    at: [Instant; Timer::COUNT],
}

impl Default for Timers {
    fn default() -> Self {
        Self { at: [NEVER; Timer::COUNT] }
    }
}

impl Timers {
    /// Starts or restarts `timer`, to fire at `at`.
    pub(crate) fn arm(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
    }

    /// Starts `timer`, to fire at `at`, unless it runs already.
    pub(crate) fn arm_if_idle(&mut self, timer: Timer, at: Instant) {
        if self.when(timer).is_none() {
            self.arm(timer, at);
        }
    }

    /// Stops `timer`.
    pub(crate) fn stop(&mut self, timer: Timer) {
        self.at[timer as usize] = NEVER;
    }

    /// Stops all timers.
    pub(crate) fn stop_all(&mut self) {
        *self = Self::default();
    }

    /// Returns the time at which `timer` fires; `None` if it does not run.
    pub(crate) fn when(&self, timer: Timer) -> Option<Instant> {
        running(self.at[timer as usize])
    }

    /// Returns the time at which the first timer fires; `None` if none runs.
    pub(crate) fn next(&self) -> Option<Instant> {
        running(self.at.iter().fold(NEVER, |first, at| first.min(*at)))
    }

    /// Stops the first timer that is due at `now` and returns it; `None` if none is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Timer> {
        let due = |timer: &Timer| self.when(*timer).is_some_and(|at| at <= now);
        let timer = Timer::ALL.into_iter().find(due)?;
        self.stop(timer);
        Some(timer)
    }
}

fn running(at: Instant) -> Option<Instant> {
    (at < NEVER).then_some(at)
}

/// The time stored for a timer that does not run: the end of the clock, after 584 years.
const NEVER: Instant = Instant::from_nanos(u64::MAX);
