//! Experiments of several parts. A [`Measurement`] is one part: its cases, how each is measured, and what follows
//! from the samples. [`Parts`] are measured one after another, as one experiment.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use rxo_demo::turns::{Cases, Turns};
use serde::Serialize;

use crate::claim::Basis;
use crate::runner::{Experiment, Outcome};
use crate::scenario::{Cells, sampled};

/// A part of an experiment. `C` is a case, `S` the result of one measurement.
pub(crate) struct Measurement<C: 'static, S: 'static> {
    basis: Basis,
    /// The cases, which take turns at being first; none omits the part.
    cases: Vec<C>,
    /// Number of rounds; each case is measured once in a round.
    rounds: usize,
    /// Checks for the programs that a measurement needs.
    prepare: fn() -> Result<()>,
    name: Box<dyn Fn(C) -> String>,
    measure: Box<Measure<C, S>>,
    line: fn(&S) -> String,
    outcome: Box<Conclusion<C, S>>,
}

/// Measures a case. The flag is set when the user interrupts.
type Measure<C, S> = dyn Fn(C, &AtomicBool) -> Result<S>;

/// Returns the figures, claims and facts that follow from the samples.
type Conclusion<C, S> = dyn Fn(&Cells<C, S>) -> Result<Outcome>;

impl<C, S> Measurement<C, S> {
    /// Measures each case once. `name` names a case; the flag of `measure` is set when the user interrupts; `line`
    /// returns a progress line about a result.
    pub(crate) fn new(
        (basis, cases): (Basis, Vec<C>),
        name: impl Fn(C) -> String + 'static,
        measure: impl Fn(C, &AtomicBool) -> Result<S> + 'static,
        line: fn(&S) -> String,
        outcome: impl Fn(&Cells<C, S>) -> Result<Outcome> + 'static,
    ) -> Self {
        let (name, measure, outcome) = (Box::new(name), Box::new(measure), Box::new(outcome));
        Self { basis, cases, rounds: 1, prepare: || Ok(()), name, measure, line, outcome }
    }

    pub(crate) fn rounds(self, rounds: usize) -> Self {
        Self { rounds, ..self }
    }

    /// Returns what follows from `cells`.
    #[cfg(test)]
    pub(crate) fn concluded(&self, cells: &Cells<C, S>) -> Result<Outcome> {
        (self.outcome)(cells)
    }

    /// Adds a check for the programs that the measurement needs.
    pub(crate) fn prepared_by(self, prepare: fn() -> Result<()>) -> Self {
        Self { prepare, ..self }
    }
}

impl<C, S> Experiment for Measurement<C, S>
where
    C: Copy + PartialEq + Serialize + 'static,
    S: Serialize + 'static,
{
    fn prepare(&self) -> Result<()> {
        if self.cases.is_empty() { Ok(()) } else { (self.prepare)() }
    }

    fn steps(&self) -> Result<usize> {
        Ok(self.rounds * self.cases.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let Self { cases, rounds, name, line, .. } = self;
        let cases = Cases { cases, rounds: *rounds, rotated: cases.len() };
        let measure = |case| (self.measure)(case, turns.stop());
        let samples = sampled(turns, self.basis.is_timed(), cases, (name, measure, line))?;
        let cells = Cells::of(self.cases.iter().copied().zip(samples).collect());
        let Outcome { measured, .. } = Outcome::new(Vec::new(), &cells)?;
        Ok(Outcome { measured, ..(self.outcome)(&cells)? })
    }

    fn needs_networks(&self) -> bool {
        self.basis.is_timed() && !self.cases.is_empty()
    }
}

/// An experiment of several parts, by their names in the measurements.
pub(crate) struct Parts(pub(crate) Vec<(&'static str, Box<dyn Experiment>)>);

#[cfg(test)]
impl Parts {
    /// Returns the number of measurements of each part.
    pub(crate) fn each_step(&self) -> Vec<usize> {
        self.0.iter().map(|(_, part)| part.steps().unwrap_or_default()).collect()
    }
}

impl Experiment for Parts {
    fn prepare(&self) -> Result<()> {
        self.0.iter().try_for_each(|(_, part)| part.prepare())
    }

    fn steps(&self) -> Result<usize> {
        self.0.iter().map(|(_, part)| part.steps()).sum()
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let mut all = Outcome::default();
        for (name, part) in &self.0 {
            if part.steps()? == 0 {
                continue;
            }
            let Outcome { figures, claims, facts, missing, measured, damage } =
                part.measure(turns)?;
            all.figures.extend(figures);
            all.claims.extend(claims);
            all.facts.extend(facts);
            all.missing.extend(missing);
            all.measured.extend(measured.into_iter().map(|(_, value)| ((*name).to_owned(), value)));
            all.damage = all.damage.or(damage);
        }
        Ok(all)
    }

    fn needs_networks(&self) -> bool {
        self.0.iter().any(|(_, part)| part.needs_networks())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn twice(cases: Vec<u32>) -> Measurement<u32, u32> {
        let outcome = |cells: &Cells<u32, u32>| -> Result<Outcome> {
            let sum: u32 = cells.samples().map(|(_, twice)| twice).sum();
            Ok(Outcome { facts: vec![("sum", sum.to_string())], ..Outcome::default() })
        };
        let (name, measure) = (|case: u32| case.to_string(), |case, _: &AtomicBool| Ok(2 * case));
        Measurement::new((Basis::Count, cases), name, measure, u32::to_string, outcome)
    }

    #[test]
    fn a_part_without_cases_is_left_out_and_needs_no_program() {
        let none = twice(Vec::new()).prepared_by(|| anyhow::bail!("install it"));
        let parts = Parts(vec![("twice", Box::new(twice(vec![1, 2]))), ("none", Box::new(none))]);
        let stop = AtomicBool::new(false);
        let outcome = parts.measure(&Turns::new(2, true, &stop)).unwrap();
        assert!(parts.prepare().is_ok() && !parts.needs_networks());
        assert_eq!(parts.each_step(), [2, 0]);
        assert_eq!(Value::Object(outcome.measured), json!({ "twice": [[1, [2]], [2, [4]]] }));
        assert_eq!(outcome.facts, [("sum", "6".to_owned())]);
    }
}
