//! Balance: checks that each frame that a worker received was passed on, dropped for a reason, or is held.
//!
//! This module is separate from the counting, because it must find errors of the counting. Each stage of a
//! worker has its own counters: frames that leave one stage must enter the next. The check compares two
//! snapshots without side effects, each taken at one instant between two turns. Contract: with consistent
//! counters, the check finds nothing, whatever the traffic.

use rxo_coalesce::Counters;
use rxo_device::SinkCounters;

rxo_frame::counters! {
    /// For each pair of neighbouring stages of a worker, the number of frames by which their counters disagree.
    /// Missing and surplus frames both count as positive.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Imbalance {
        /// The disagreement between the nic and the engine: frames from the nic must be dropped as overload,
        /// or passed to the engine.
        pub nic_in: u64,
        /// The disagreement in the engine: frames passed to the engine must be delivered, or held.
        pub engine: u64,
        /// The disagreement between the engine and the host: delivered frames must be sent, dropped, or kept
        /// while the sink is full.
        pub host_out: u64,
        /// The disagreement between the host and the nic: frames from the host, and inserted ACKs, must be
        /// sent, dropped or kept.
        pub nic_out: u64,
        /// The disagreement in the switch of several guests: frames from all ports must be forwarded,
        /// flooded, or dropped.
        pub switch: u64,
    }
}

/// Two counts of frames at one instant: those that entered a stage, and those that the stage accounts for. Both
/// are zero for a direction that the worker does not serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stage {
    /// Number of frames that entered the stage from the previous one, and of frames that the stage added.
    pub(super) entered: u64,
    /// Number of frames that left the stage, were dropped and counted there, or wait there.
    pub(super) accounted: u64,
}

/// The counts of all stages at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) nic_in: Stage,
    pub(super) engine: Stage,
    pub(super) host_out: Stage,
    pub(super) nic_out: Stage,
    pub(super) switch: Stage,
}

/// The last snapshot, and the sum of all imbalances.
#[derive(Debug, Default)]
pub(super) struct Balance {
    last: Snapshot,
    found: Imbalance,
}

impl Stage {
    /// Creates the stage before the engine. The stage drops `dropped` of the frames that entered, and passes
    /// `taken` frames to the engine.
    pub(super) const fn before(entered: u64, dropped: u64, taken: u64) -> Self {
        Self { entered, accounted: dropped + taken }
    }

    /// Creates the stage of an engine that holds `held` frames.
    pub(super) fn of_engine(engine: &Counters, held: usize) -> Self {
        Self { entered: engine.frames, accounted: engine.delivered_frames() + held as u64 }
    }

    /// Creates the stage of a sink that received `given` frames. The sink still keeps `kept` frames, because
    /// the device is full.
    pub(super) const fn of_sink(given: u64, sink: &SinkCounters, kept: u64) -> Self {
        Self {
            entered: given + sink.segments_added,
            accounted: sink.frames + sink.dropped_frames + kept,
        }
    }

    /// Returns the number of missing frames; negative if there are too many.
    const fn missing(self) -> i64 {
        self.entered.wrapping_sub(self.accounted).cast_signed()
    }
}

/// Returns the frames by which the stages disagree, among those that passed between two snapshots.
fn imbalance(then: &Snapshot, now: &Snapshot) -> Imbalance {
    let between = |of: fn(&Snapshot) -> Stage| {
        of(now).missing().wrapping_sub(of(then).missing()).unsigned_abs()
    };
    Imbalance {
        nic_in: between(|it| it.nic_in),
        engine: between(|it| it.engine),
        host_out: between(|it| it.host_out),
        nic_out: between(|it| it.nic_out),
        switch: between(|it| it.switch),
    }
}

impl Balance {
    /// Compares `now` with the previous snapshot.
    pub(super) fn check(&mut self, now: Snapshot) {
        self.found = self.found.plus(&imbalance(&self.last, &now));
        self.last = now;
    }

    /// Returns the sum of all imbalances found so far.
    pub(super) const fn found(&self) -> Imbalance {
        self.found
    }
}

impl Imbalance {
    /// Returns the sum of the disagreements of all stages, in frames.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.named().map(|(_, frames)| frames).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Correct counts of a worker.
    #[derive(Clone, Copy, Debug)]
    struct Books {
        overload: u64,
        held: u64,
        host: [u64; 4],
        back: [u64; 5],
        forwarded: [u64; 3],
    }

    /// The number of counts that a test can falsify.
    const NUMBERS: usize = 16;

    fn snapshot(books: &Books, wrong: Option<(usize, i64)>) -> Snapshot {
        let mut number = 0;
        let mut count = |right: u64| {
            let off = wrong.filter(|(at, _)| *at == number).map_or(0, |(_, by)| by);
            number += 1;
            right.wrapping_add_signed(off)
        };
        let Books { overload, held, host: [whole, dropped, kept, added], back, forwarded } = *books;
        // These counts follow from the others.
        let delivered = whole + dropped + kept;
        let (sent, taken) = (whole + added, delivered + held);
        let mut sink = SinkCounters::default();
        let nic_in = Stage::before(count(overload + taken), count(overload), count(taken));
        let engine = Stage { entered: count(taken), accounted: count(delivered) + count(held) };
        (sink.frames, sink.dropped_frames, sink.segments_added) =
            (count(sent), count(dropped), count(added));
        let host_out = Stage::of_sink(count(delivered), &sink, count(kept));
        let [left, refused, waits, cut, inserted] = back;
        let given = left + refused + waits;
        (sink.frames, sink.dropped_frames, sink.segments_added) =
            (count(left + cut + inserted), count(refused), count(cut));
        let nic_out = Stage::of_sink(count(given) + inserted, &sink, waits);
        let [one, many, none] = forwarded;
        let switch = Stage { entered: count(one + many + none), accounted: one + many + none };
        assert_eq!(number, NUMBERS);
        Snapshot { nic_in, engine, host_out, nic_out, switch }
    }

    fn books() -> impl Strategy<Value = Books> {
        let n = || 1_000..1_000_000_u64;
        let (four, five) = ([n(), n(), n(), n()], [n(), n(), n(), n(), n()]);
        let all = (n(), n(), four, five, [n(), n(), n()]);
        all.prop_map(|(overload, held, host, back, forwarded)| Books {
            overload,
            held,
            host,
            back,
            forwarded,
        })
    }

    proptest! {
        #[test]
        fn of_counters_that_agree_nothing_is_found(then in books(), now in books()) {
            let between = imbalance(&snapshot(&then, None), &snapshot(&now, None));
            prop_assert_eq!(between, Imbalance::default());
        }

        #[test]
        fn each_number_that_is_wrong_is_noticed_by_as_much(
            (then, now) in (books(), books()),
            (number, by) in (0..NUMBERS, prop_oneof![-900_i64..0, 1_i64..900]),
        ) {
            let (then, wrong) = (snapshot(&then, None), snapshot(&now, Some((number, by))));
            let found = imbalance(&then, &wrong);
            prop_assert_eq!(found.total(), by.unsigned_abs(), "number {}: {:?}", number, found);
            // An error is found once, and correcting the count is a second error.
            let mut balance = Balance::default();
            balance.check(then);
            let before = balance.found().total();
            balance.check(wrong);
            balance.check(wrong);
            prop_assert_eq!(balance.found().total() - before, by.unsigned_abs());
            balance.check(snapshot(&now, None));
            prop_assert_eq!(balance.found().total() - before, 2 * by.unsigned_abs());
        }
    }

    #[test]
    fn the_stage_is_named() {
        let lost =
            Snapshot { host_out: Stage { entered: 10, accounted: 7 }, ..Snapshot::default() };
        let found = imbalance(&Snapshot::default(), &lost);
        assert_eq!(found, Imbalance { host_out: 3, ..Imbalance::default() });
        assert_eq!(found.named().nth(2), Some(("host_out", 3)));
    }
}
