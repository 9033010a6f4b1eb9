//! The time of a worker by stage, for measurements.
//!
//! Separate because it is optional: without a [`StageTimer`] no clock is read, and a stage costs one branch.
//! With one, a sample of the turns is timed from stage to stage. The time of reading the clock is measured at
//! the start and subtracted.

/// How turns are timed.
#[derive(Clone, Copy, Debug)]
pub struct StageTimer {
    /// A clock in nanoseconds; best the processor time of the thread, which stops while others run.
    pub clock: fn() -> u64,
    /// One of so many turns is timed. At least 1.
    pub every_turns: u32,
}

/// A stage of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Commands of applications, and timers that are due.
    Upkeep,
    /// Frames from the device.
    Receive,
    /// The engine.
    Coalesce,
    /// Demultiplexing of deliveries, and TCP for them.
    Deliver,
    /// TCP decides what to send, and headers are written.
    Serve,
    /// ACK templates become ACKs, for a device that does not expand them.
    Expand,
    /// Packets to the device.
    Transmit,
}

/// The time of the timed turns by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// All turns of the host.
    pub turns: u64,
    /// Those that were timed.
    pub timed_turns: u64,
    /// The time of the timed turns in each of [`Stage::ALL`], in nanoseconds.
    pub ns: [u64; Stage::ALL.len()],
}

impl Stage {
    /// Every stage, in the order of a turn.
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
    /// The time of the timed turns in `stage`, in nanoseconds.
    #[must_use]
    pub const fn ns(&self, stage: Stage) -> u64 {
        self.ns[stage as usize]
    }

    /// The difference from `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut ns = self.ns;
        ns.iter_mut().zip(earlier.ns).for_each(|(now, then)| *now = now.saturating_sub(then));
        Self {
            turns: self.turns.saturating_sub(earlier.turns),
            timed_turns: self.timed_turns.saturating_sub(earlier.timed_turns),
            ns,
        }
    }
}

/// Times the stages of a turn.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    timer: Option<StageTimer>,
    /// The time of reading the clock, in nanoseconds.
    reading_ns: u64,
    /// The running stage and its begin, in a timed turn.
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

    /// Begins a turn.
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

    /// Begins `stage`, and ends the one before.
    #[inline]
    pub(crate) fn switch(&mut self, stage: Stage) {
        if self.running.is_some() {
            self.note(Some(stage));
        }
    }

    /// Ends the turn.
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

/// The time of reading `clock`: the least of several, because disturbances only make it longer.
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

    /// A clock that is 100 ns later each time it is read.
    fn ticking() -> u64 {
        static NOW: AtomicU64 = AtomicU64::new(0);
        NOW.fetch_add(100, Ordering::Relaxed)
    }

    /// A clock that takes longer steps each time it is read.
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
        // Only the clock's own time passes.
        assert!(Stage::ALL.iter().all(|&stage| times.ns(stage) == 0), "{times:?}");
    }

    #[test]
    fn time_goes_to_the_stage_in_which_it_passed() {
        let mut watch = Stopwatch::new(Some(StageTimer { clock: slowing, every_turns: 1 }));
        let before = watch.times();
        turn(&mut watch);
        let times = watch.times().since(&before);
        // Each stage takes longer than the one before.
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
