//! Turns: runs measurements in turn, round after round, so that compared cases are measured close together.
//! Shows progress, judges the load of each turn, and ends early on request.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use rxo_testbed::MachineReading;

use crate::load::Load;
use crate::progress::Progress;

/// The measurements of one run of an experiment, with their progress display and their stop flag.
#[derive(Debug)]
pub struct Turns<'a> {
    progress: Progress,
    stop: &'a AtomicBool,
    /// The load during each turn that was judged, by the turn's name.
    loads: RefCell<Vec<(String, Load)>>,
    /// The number of turns that may still be repeated because the machine was busy.
    repeats: Cell<usize>,
}

/// The cases of an experiment, which are measured one after the other in each round.
#[derive(Clone, Copy, Debug)]
pub struct Cases<'a, C> {
    /// The cases, in the order in which the first round measures them.
    pub cases: &'a [C],
    /// The number of rounds. A round measures each case once.
    pub rounds: usize,
    /// The size of a group of neighbouring cases. In each group, another case is first in each round, so that
    /// slow changes of the machine affect all cases equally. With 1 the order is fixed.
    pub rotated: usize,
}

impl<C> Cases<'_, C> {
    /// Returns the indices of the cases, in the order of round `round`.
    fn order(&self, round: usize) -> impl Iterator<Item = usize> {
        let (count, rotated) = (self.cases.len(), self.rotated.max(1));
        (0..count).map(move |index| {
            let first = index - index % rotated;
            first + (index - first + round) % rotated.min(count - first)
        })
    }
}

impl<'a> Turns<'a> {
    /// Prepares `steps` measurements; `json` silences the progress display. Measuring ends early once `stop` is set.
    pub fn new(steps: usize, json: bool, stop: &'a AtomicBool) -> Self {
        let (loads, repeats) = Default::default();
        Self { progress: Progress::new(steps, json), stop, loads, repeats }
    }

    /// Permits at most `count` repetitions of turns. A turn is repeated at once if the machine was busy during
    /// the turn.
    #[must_use]
    pub fn repeating(self, count: usize) -> Self {
        self.repeats.set(count);
        self
    }

    /// Returns the load during each turn that took real time, by the turn's name.
    pub fn loads(&self) -> Vec<(String, Load)> {
        self.loads.borrow().clone()
    }

    /// Measures each case once. Use it for measurements of counts and of virtual time, which do not depend on
    /// other load on the machine.
    ///
    /// # Errors
    /// The first error of `measure`.
    pub fn count<C: Copy, S>(
        &self,
        cases: &[C],
        name: impl Fn(C) -> String,
        mut measure: impl FnMut(C) -> Result<S>,
        line: impl Fn(&S) -> String,
    ) -> Result<Vec<S>> {
        let mut samples = Vec::with_capacity(cases.len());
        for &case in cases {
            if self.is_ended() {
                break;
            }
            let name = name(case);
            self.begin(&name);
            let sample = measure(case).with_context(|| format!("{name} could not be measured"))?;
            self.end(&format!("{name:<36}  {}", line(&sample)));
            samples.push(sample);
        }
        Ok(samples)
    }

    /// Measures each case in each round, and returns the samples of each case. Shows the result of `name`
    /// during a measurement, and the result of `line` after the measurement. Once `stop` is set, returns the
    /// samples so far.
    ///
    /// # Errors
    /// The first error of `measure`, which receives a case and the round.
    pub fn measure<C: Copy, S>(
        &self,
        cases: Cases<'_, C>,
        name: impl Fn(C) -> String,
        mut measure: impl FnMut(C, usize) -> Result<S>,
        line: impl Fn(&S) -> String,
    ) -> Result<Vec<Vec<S>>> {
        let mut samples: Vec<Vec<S>> = cases.cases.iter().map(|_| Vec::new()).collect();
        for round in 0..cases.rounds {
            for place in cases.order(round) {
                if self.is_ended() {
                    return Ok(samples);
                }
                let (case, number) = (cases.cases[place], round + 1);
                let name = name(case);
                self.begin(&format!("round {number}: {name}"));
                let sample = self
                    .judged(&format!("round {number}: {name}"), || measure(case, round))
                    .with_context(|| format!("{name} could not be measured"))?;
                self.end(&format!("round {number}  {name:<36}  {}", line(&sample)));
                samples[place].push(sample);
            }
        }
        Ok(samples)
    }

    /// Measures one turn, and judges the load of the machine during the turn. Repeats a turn during which the
    /// machine was busy, as long as repeats are left.
    fn judged<S>(&self, turn: &str, mut measure: impl FnMut() -> Result<S>) -> Result<S> {
        let mut again = MOST_REPEATS;
        loop {
            let before = MachineReading::now()?;
            let sample = measure()?;
            let load = Load::of(MachineReading::now()?.since(&before));
            let left = self.repeats.get().min(again);
            if load.permits_verdict || left == 0 || self.is_ended() {
                self.loads.borrow_mut().push((turn.to_owned(), load));
                return Ok(sample);
            }
            again -= 1;
            self.repeats.set(self.repeats.get() - 1);
        }
    }

    /// Shows that the measurement `name` has begun.
    pub fn begin(&self, name: &str) {
        self.progress.begin(name);
    }

    /// Shows the result `line` of the measurement that has ended.
    pub fn end(&self, line: &str) {
        self.progress.end(line);
    }

    /// Returns the flag that is set when the user interrupts.
    pub const fn stop(&self) -> &AtomicBool {
        self.stop
    }

    /// Returns `true` if the user has interrupted.
    pub fn is_ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the reason why measuring ended early; `None` if the user did not interrupt.
    pub fn end_reason(&self) -> Option<String> {
        let why = "stopped by a signal: this is what was measured until then";
        self.is_ended().then(|| why.to_owned())
    }

    /// Removes the progress display after the last measurement.
    pub fn finish(&self) {
        self.progress.finish();
    }
}

/// Maximum number of times that one turn is repeated.
const MOST_REPEATS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn order(count: usize, rotated: usize, round: usize) -> Vec<usize> {
        let cases = vec![(); count];
        Cases { cases: &cases, rounds: 3, rotated }.order(round).collect()
    }

    #[test]
    fn each_round_begins_with_another_of_those_that_are_compared() {
        assert_eq!(order(3, 1, 2), [0, 1, 2]);
        assert_eq!(order(3, 3, 1), [1, 2, 0]);
        assert_eq!(order(6, 3, 4), [1, 2, 0, 4, 5, 3]);
        // The last group is smaller.
        assert_eq!(order(5, 3, 1), [1, 2, 0, 4, 3]);
        for round in 0..7 {
            let mut all = order(5, 5, round);
            assert_eq!(all[0], round % 5);
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4], "every case once");
        }
    }

    #[test]
    fn samples_stand_with_their_case_and_stop_ends_early() {
        let stop = AtomicBool::new(false);
        let turns = Turns::new(6, true, &stop);
        let cases = Cases { cases: &[10, 20], rounds: 3, rotated: 2 };
        let name = |case: usize| case.to_string();
        let line = |_: &usize| String::new();
        let all = turns.measure(cases, name, |case, round| Ok(case + round), line).unwrap();
        assert_eq!(all, [vec![10, 11, 12], vec![20, 21, 22]]);
        let measure = |case, round| {
            stop.store(round == 1, Ordering::Relaxed);
            Ok(case)
        };
        assert_eq!(turns.measure(cases, name, measure, line).unwrap(), [vec![10], vec![20, 20]]);
        assert!(turns.end_reason().is_some());
    }

    #[test]
    fn each_turn_has_its_load_and_a_count_has_none() {
        let stop = AtomicBool::new(false);
        let turns = Turns::new(4, true, &stop);
        let (name, line) = (|case: u8| case.to_string(), |_: &u8| String::new());
        let cases = Cases { cases: &[1, 2], rounds: 2, rotated: 1 };
        turns.measure(cases, name, |case, _| Ok(case), line).unwrap();
        assert_eq!(turns.count(&[1, 2], name, Ok, line).unwrap(), [1, 2]);
        let names: Vec<_> = turns.loads().into_iter().map(|(turn, _)| turn).collect();
        assert_eq!(names, ["round 1: 1", "round 1: 2", "round 2: 1", "round 2: 2"]);
    }

    #[test]
    fn a_failure_names_its_case() {
        let stop = AtomicBool::new(false);
        let turns = Turns::new(1, true, &stop);
        let cases = Cases { cases: &["one way"], rounds: 1, rotated: 1 };
        let fail = |_, _| anyhow::bail!("no");
        let failed = turns.measure(cases, str::to_owned, fail, |_: &()| String::new());
        let error = format!("{:#}", failed.unwrap_err());
        assert_eq!(error, "one way could not be measured: no");
    }
}
