//! Measurements in turn, round after round: what is compared is measured in close succession. Shows
//! where they are, and ends early when the user wants it.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::progress::Progress;

/// The measurements of one run of an experiment.
#[derive(Debug)]
pub struct Turns<'a> {
    progress: Progress,
    stop: &'a AtomicBool,
}

/// What is measured in turn.
#[derive(Clone, Copy, Debug)]
pub struct Cases<'a, C> {
    /// The cases, in their order.
    pub cases: &'a [C],
    /// How often each is measured.
    pub rounds: usize,
    /// So many neighbours take turns at being first: each round begins with another of them, so that
    /// what changes in a machine over time falls on all alike. With 1 the order stays.
    pub rotated: usize,
}

impl<C> Cases<'_, C> {
    /// The places of the cases, in the order of round `round`.
    fn order(&self, round: usize) -> impl Iterator<Item = usize> {
        let (count, rotated) = (self.cases.len(), self.rotated.max(1));
        (0..count).map(move |index| {
            let first = index - index % rotated;
            first + (index - first + round) % rotated.min(count - first)
        })
    }
}

impl<'a> Turns<'a> {
    /// For so many measurements; `json` when the result is for a machine. Ends early after `stop` was
    /// set.
    pub fn new(steps: usize, json: bool, stop: &'a AtomicBool) -> Self {
        Self { progress: Progress::new(steps, json), stop }
    }

    /// Measures each case in each round and gives the samples of each. `name` is shown while it is
    /// measured, `line` when it has been. After `stop` was set, the samples there are.
    ///
    /// # Errors
    /// The first of `measure`, which is given a case and the round.
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
                let sample = measure(case, round)
                    .with_context(|| format!("{name} could not be measured"))?;
                self.end(&format!("round {number}  {name:<36}  {}", line(&sample)));
                samples[place].push(sample);
            }
        }
        Ok(samples)
    }

    /// A measurement begins.
    pub fn begin(&self, name: &str) {
        self.progress.begin(name);
    }

    /// The measurement came to this.
    pub fn end(&self, line: &str) {
        self.progress.end(line);
    }

    /// The flag that is set when the user wants an end.
    pub const fn stop(&self) -> &AtomicBool {
        self.stop
    }

    /// Whether the user wants an end.
    pub fn is_ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Why there are no more measurements, if the user wanted an end.
    pub fn why_ended(&self) -> Option<String> {
        let why = "stopped by a signal: this is what was measured until then";
        self.is_ended().then(|| why.to_owned())
    }

    /// No more measurements.
    pub fn finish(&self) {
        self.progress.finish();
    }
}

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
        // The last of them are fewer.
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
        assert!(turns.why_ended().is_some());
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
