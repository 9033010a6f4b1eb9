//! Every timer of a connection, in one table.

use rxo_frame::Instant;

/// A timer. At most one of each runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// When nothing new has been acknowledged for a retransmission timeout (RFC 6298).
    Retransmit,
    /// When the peer's window has blocked data for so long that it must be probed (RFC 9293, section
    /// 3.8.6.1).
    Persist,
    /// When the last segments sent have not been acknowledged for about two round trips
    /// (RFC 8985, section 7).
    TailLoss,
    /// When a segment that was overtaken counts as lost (RFC 8985, section 6.2).
    Reorder,
    /// When more of the congestion window may be used.
    Pace,
    /// When a delayed acknowledgement is due (RFC 9293, section 3.8.6.3).
    DelayedAck,
    /// When an idle peer is probed (RFC 9293, section 3.8.4).
    KeepAlive,
    /// When the connection fails for lack of progress (RFC 9293, section 3.8.3: R2).
    GiveUp,
    /// When an orphan ends.
    Orphan,
    /// When the pair of sockets may be used again (RFC 9293, section 3.3.2: 2 MSL).
    TimeWait,
}

impl Timer {
    const COUNT: usize = 10;
    /// Every timer, in the order in which those that are due together fire: a probe before the timeout.
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

/// When each timer fires; [`NEVER`] if it does not run, so that stopping one and looking for the first take no branch.
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
    /// Starts `timer`, or restarts it.
    pub(crate) fn arm(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
    }

    /// Starts `timer` unless it runs.
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

    /// When `timer` fires; `None` if it does not run.
    pub(crate) fn when(&self, timer: Timer) -> Option<Instant> {
        running(self.at[timer as usize])
    }

    /// When the first timer fires; `None` if none runs.
    pub(crate) fn next(&self) -> Option<Instant> {
        running(self.at.iter().fold(NEVER, |first, at| first.min(*at)))
    }

    /// Stops the first timer that is due at `now`, and returns it.
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

/// The clock ends here, after 584 years.
const NEVER: Instant = Instant::from_nanos(u64::MAX);
