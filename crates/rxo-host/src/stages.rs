//! The time that a worker spends in each stage of [`Host::turn`](crate::Host::turn), for measurements.
//!
//! The measurement is optional: without a [`StageTimer`] no clock is read, and a stage costs one branch. With a
//! [`StageTimer`], every nth round is timed, stage by stage. The cost of reading the clock is measured at the
//! start and subtracted.

/// The clock and the sampling rate of the stage times.
#[derive(Clone, Copy, Debug)]
pub struct StageTimer {
    /// A clock in nanoseconds; preferably the thread's CPU time, which stops while other threads run.
    pub clock: fn() -> u64,
    /// The sampling interval: one in `every_turns` calls of [`Host::turn`](crate::Host::turn) is timed. 0 is
    /// treated as 1.
    pub every_turns: u32,
}

/// A stage of [`Host::turn`](crate::Host::turn).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The stage that applies commands from applications and runs expired timers.
    Upkeep,
    /// The stage that receives frames from the device.
    Receive,
    /// The stage that coalesces frames in the receive engine.
    Coalesce,
    /// The stage that finds the connections of deliveries and processes the segments in TCP.
    Deliver,
    /// The stage that decides what to send and writes headers.
    Serve,
    /// The stage that expands ACK templates into ACKs, for a device that does not expand them.
    Expand,
    /// The stage that passes packets to the device.
    Transmit,
}

rxo_frame::counters! {
    /// The time that the timed calls of [`Host::turn`](crate::Host::turn) spent in each stage.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct StageTimes {
        /// Number of calls of [`Host::turn`](crate::Host::turn).
        pub turns: u64,
        /// Number of calls of [`Host::turn`](crate::Host::turn) that were timed.
        pub timed_turns: u64,
        /// The total time of the timed calls in each of [`Stage::ALL`], in nanoseconds.
        pub ns: [u64; Stage::ALL.len()],
    }
}

impl Stage {
    /// All stages, in the order in which [`Host::turn`](crate::Host::turn) passes them.
    pub const ALL: [Self; 7] = [
        Self::Upkeep,
        Self::Receive,
        Self::Coalesce,
        Self::Deliver,
        Self::Serve,
        Self::Expand,
        Self::Transmit,
    ];
}

impl StageTimes {
    /// Returns the total time of the timed calls in `stage`, in nanoseconds.
    #[must_use]
    pub const fn ns(&self, stage: Stage) -> u64 {
        self.ns[stage as usize]
    }
}

/// Measures the stages of [`Host::turn`](crate::Host::turn).
#[derive(Debug)]
pub(crate) struct Stopwatch {
    timer: Option<StageTimer>,
    /// The cost of reading the clock, in nanoseconds.
    reading_ns: u64,
    /// The current stage and its start time in nanoseconds; `None` if the current round is not timed.
    running: Option<(Stage, u64)>,
    times: StageTimes,
}

impl Stopwatch {
    pub(crate) fn new(timer: Option<StageTimer>) -> Self {
        let reading_ns = timer.map_or(0, |timer| reading(timer.clock));
        Self { timer, reading_ns, running: None, times: StageTimes::default() }
    }

    pub(crate) const fn times(&self) -> StageTimes {
        self.times
    }

    /// Begins a call of [`Host::turn`](crate::Host::turn).
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.times.turns += 1;
        if let Some(timer) = self.timer
            && self.times.turns.is_multiple_of(timer.every_turns.max(1).into())
        {
            self.times.timed_turns += 1;
            self.running = Some((Stage::Upkeep, (timer.clock)()));
        }
    }

    /// Ends the current stage and begins `stage`.
    #[inline]
    pub(crate) fn switch(&mut self, stage: Stage) {
        if self.running.is_some() {
            self.note(Some(stage));
        }
    }

    /// Ends a call of [`Host::turn`](crate::Host::turn).
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.running.is_some() {
            self.note(None);
        }
    }

    #[cold]
    fn note(&mut self, next: Option<Stage>) {
        let (Some(timer), Some((stage, since))) = (self.timer, self.running) else { return };
        let now = (timer.clock)();
        let took = now.saturating_sub(since).saturating_sub(self.reading_ns);
        self.times.ns[stage as usize] += took;
        self.running = next.map(|next| (next, now));
    }
}

/// Returns the cost of reading `clock`: the minimum of several attempts, because disturbances only increase
/// it.
fn reading(clock: fn() -> u64) -> u64 {
    let one = |_| {
        let begin = clock();
        clock().saturating_sub(begin)
    };
    (0..READINGS).map(one).min().unwrap_or(0)
}

const READINGS: usize = 32;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that advances by 100 ns each time it is read.
    fn ticking() -> u64 {
        static NOW: AtomicU64 = AtomicU64::new(0);
        NOW.fetch_add(100, Ordering::Relaxed)
    }

    /// A clock whose steps grow each time it is read.
    fn slowing() -> u64 {
        static READ: AtomicU64 = AtomicU64::new(0);
        READ.fetch_add(1, Ordering::Relaxed).pow(2)
    }

    fn turn(watch: &mut Stopwatch) {
        watch.begin();
        watch.switch(Stage::Receive);
        watch.switch(Stage::Coalesce);
        watch.end();
    }

    #[test]
    fn one_turn_in_so_many_is_timed_without_the_clocks_own_time() {
        let mut watch = Stopwatch::new(Some(StageTimer { clock: ticking, every_turns: 3 }));
        (0..7).for_each(|_| turn(&mut watch));
        let times = watch.times();
        assert_eq!((times.turns, times.timed_turns), (7, 2));
        // Only the cost of reading the clock passes, which is subtracted.
        assert!(Stage::ALL.iter().all(|&stage| times.ns(stage) == 0), "{times:?}");
    }

    #[test]
    fn time_goes_to_the_stage_in_which_it_passed() {
        let mut watch = Stopwatch::new(Some(StageTimer { clock: slowing, every_turns: 1 }));
        let before = watch.times();
        turn(&mut watch);
        let times = watch.times().since(&before);
        // Each stage takes longer than the one before it.
        let [upkeep, receive, coalesce] =
            [Stage::Upkeep, Stage::Receive, Stage::Coalesce].map(|stage| times.ns(stage));
        assert!(upkeep > 0 && receive > upkeep && coalesce > receive, "{times:?}");
        assert_eq!(times.ns(Stage::Transmit), 0);
    }

    #[test]
    fn without_a_timer_turns_are_only_counted() {
        let mut watch = Stopwatch::new(None);
        turn(&mut watch);
        assert_eq!(watch.times(), StageTimes { turns: 1, ..StageTimes::default() });
    }
}
