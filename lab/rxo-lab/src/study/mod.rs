//! Experiments as tables: cases, a measurement of each case, and rows.
//!
//! A case combines a topology, traffic, a path and a policy. A [`Table`] measures its cases in turn, round after
//! round, and makes rows of them, whose fields are those of the case and of the measurement. A [`Study`] has one
//! table or more. What follows from the rows stands in its book ([`conclude`]); a table may also conclude from its
//! samples itself.

mod rows;

use std::sync::atomic::AtomicBool;

use anyhow::{Result, anyhow};
use rxo_demo::turns::{Cases, Turns};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::rows::{joined, summed_up};
use crate::claim::{Fact, book};
use crate::conclude::conclude;
use crate::missing::{Missing, NOT_MEASURED};
use crate::runner::{Experiment, Outcome};
use crate::scenario::{Cells, sampled};

/// The rows of each table, by its name.
pub(crate) type Rows = Map<String, Value>;

type Derive = dyn Fn(&mut Rows) -> Result<()>;
type Facts = dyn Fn(&Rows) -> Vec<Fact>;

/// An experiment of several tables, all those that its book names. A table may have no cases.
pub(crate) struct Study {
    /// The name of its book.
    pub(crate) id: &'static str,
    pub(crate) tables: Vec<Box<dyn Measured>>,
    /// Checks for programs; see [`Experiment::prepare`].
    pub(crate) prepare: Box<dyn Fn() -> Result<()>>,
    /// Adds values that follow from the rows and that no expression can say.
    pub(crate) derive: Box<Derive>,
    /// Returns the facts in the experiment's notes.
    pub(crate) facts: Box<Facts>,
    pub(crate) needs_networks: bool,
}

impl Study {
    /// Makes a study of tables alone. It needs networks if a table takes real time.
    pub(crate) fn of(id: &'static str, tables: Vec<Box<dyn Measured>>) -> Self {
        Self {
            id,
            needs_networks: tables.iter().any(|table| table.is_timed() && table.steps() > 0),
            tables,
            prepare: Box::new(|| Ok(())),
            derive: Box::new(|_| Ok(())),
            facts: Box::new(|_| Vec::new()),
        }
    }

    /// Returns the number of measurements of each table.
    #[cfg(test)]
    pub(crate) fn each_step(&self) -> Vec<usize> {
        self.tables.iter().map(|table| table.steps()).collect()
    }
}

/// Cases, and the measurement of one.
pub(crate) struct Table<C, S> {
    name: &'static str,
    cases: Vec<C>,
    /// Number of rounds; a round measures every case once. `None` for counts and virtual time.
    rounds: Option<usize>,
    /// `true` if another case is first in each round.
    is_rotated: bool,
    /// `true` if the samples of a case are one row, with their medians and ranges.
    is_summed_up: bool,
    /// `true` if a measurement that fails is missing, and the others continue.
    is_optional: bool,
    label: Box<dyn Fn(C) -> String>,
    measure: Box<Measure<C, S>>,
    /// Returns a progress line about a result.
    line: Box<dyn Fn(&S) -> String>,
    conclusion: Box<Conclusion<C, S>>,
    /// The field of a row that a case is; empty if a case has fields.
    key: &'static str,
}

/// Measures a case in a round. The flag is set when the user interrupts.
type Measure<C, S> = dyn Fn(C, usize, &AtomicBool) -> Result<S>;

/// Returns the figures, claims and facts that follow from the samples.
type Conclusion<C, S> = dyn Fn(&Cells<C, S>) -> Result<Outcome>;

impl<C: Copy, S: Serialize + 'static> Table<C, S> {
    /// Makes a table `name` of counts or virtual time. `label` names a case, `shown` is a field of the
    /// measurement with its unit, for the progress display.
    pub(crate) fn counted(
        name: &'static str,
        cases: Vec<C>,
        label: impl Fn(C) -> String + 'static,
        measure: impl Fn(C) -> Result<S> + 'static,
        shown: (&'static str, &'static str),
    ) -> Self {
        Self::new((name, cases), None, label, move |case, _, _| measure(case), line_of(shown))
    }

    /// Makes a table of measurements that take real time; each case is measured in every round and has one row.
    pub(crate) fn timed(
        named: (&'static str, Vec<C>),
        rounds: usize,
        label: impl Fn(C) -> String + 'static,
        measure: impl Fn(C, usize) -> Result<S> + 'static,
        shown: (&'static str, &'static str),
    ) -> Self {
        let measure = move |case, round, _: &AtomicBool| measure(case, round);
        let table = Self::new(named, Some(rounds), label, measure, line_of(shown));
        Self { is_summed_up: true, ..table }
    }

    /// Makes a table with a row for each measurement; `rounds` is `None` for counts and virtual time. `measure` takes
    /// a case, the round, and a flag that is set when the user interrupts; `line` returns a progress line.
    pub(crate) fn new(
        (name, cases): (&'static str, Vec<C>),
        rounds: Option<usize>,
        label: impl Fn(C) -> String + 'static,
        measure: impl Fn(C, usize, &AtomicBool) -> Result<S> + 'static,
        line: impl Fn(&S) -> String + 'static,
    ) -> Self {
        Self {
            name,
            cases,
            rounds,
            is_rotated: false,
            is_summed_up: false,
            is_optional: false,
            label: Box::new(label),
            measure: Box::new(measure),
            line: Box::new(line),
            conclusion: Box::new(|_| Ok(Outcome::default())),
            key: "",
        }
    }

    /// Draws `conclusion` from the samples, unless there are no cases.
    pub(crate) fn concluded(
        self,
        conclusion: impl Fn(&Cells<C, S>) -> Result<Outcome> + 'static,
    ) -> Self {
        Self { conclusion: Box::new(conclusion), ..self }
    }

    /// Returns what follows from `cells`.
    #[cfg(test)]
    pub(crate) fn conclude(&self, cells: &Cells<C, S>) -> Result<Outcome> {
        (self.conclusion)(cells)
    }

    /// Makes each case, which is a name, the field `key` of its row.
    pub(crate) fn by(self, key: &'static str) -> Self {
        Self { key, ..self }
    }

    /// Measures nothing unless `is_chosen`.
    pub(crate) fn only_if(mut self, is_chosen: bool) -> Self {
        self.cases.retain(|_| is_chosen);
        self
    }

    /// Lets the cases take turns at being first.
    pub(crate) fn rotated(self) -> Self {
        Self { is_rotated: true, ..self }
    }

    /// Makes a row of each measurement.
    pub(crate) fn row_by_row(self) -> Self {
        Self { is_summed_up: false, ..self }
    }

    /// Notes measurements that fail, and continues with the others.
    pub(crate) fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }
}

/// Returns a progress line about a `field` of a measurement.
fn line_of<S: Serialize>((field, unit): (&'static str, &'static str)) -> impl Fn(&S) -> String {
    move |sample| match &serde_json::to_value(sample).unwrap_or_default()[field] {
        Value::Number(number) => format!("{:.3} {unit}", number.as_f64().unwrap_or_default()),
        _ => "measured".to_owned(),
    }
}

/// A table, whatever its cases are.
pub(crate) trait Measured {
    fn name(&self) -> &'static str;

    fn steps(&self) -> usize;

    /// Returns `true` if the measurements take real time.
    fn is_timed(&self) -> bool;

    /// Measures every case. Returns the rows, by the table's name, and what the table concludes. If the user
    /// interrupts, returns the rows so far.
    ///
    /// # Errors
    /// If a measurement fails that is not optional.
    fn measure(&self, turns: &Turns<'_>, missing: &Missing) -> Result<Outcome>;
}

impl<C: Copy + Serialize, S: Serialize> Measured for Table<C, S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn steps(&self) -> usize {
        self.cases.len() * self.rounds.unwrap_or(1)
    }

    fn is_timed(&self) -> bool {
        self.rounds.is_some()
    }

    fn measure(&self, turns: &Turns<'_>, missing: &Missing) -> Result<Outcome> {
        let measure = |case: C, round: usize| -> Result<Option<S>> {
            let measured = (self.measure)(case, round, turns.stop());
            if self.is_optional { Ok(missing.or_note(measured)) } else { measured.map(Some) }
        };
        let line = |sample: &Option<S>| match sample {
            Some(sample) => (self.line)(sample),
            None => NOT_MEASURED.to_owned(),
        };
        let Self { cases, rounds, label, .. } = self;
        let rotated = if self.is_rotated { cases.len() } else { 1 };
        let in_turn = Cases { cases, rounds: rounds.unwrap_or(1), rotated };
        let samples = sampled(turns, self.is_timed(), in_turn, (label, measure, line))?;
        let samples = samples.into_iter().map(|all| all.into_iter().flatten().collect());
        let cells = Cells::of(cases.iter().copied().zip(samples).collect());
        let rows = self.rows(&cells)?;
        let outcome =
            if cases.is_empty() { Outcome::default() } else { (self.conclusion)(&cells)? };
        Ok(Outcome {
            measured: Rows::from_iter([(self.name().to_owned(), rows.into())]),
            ..outcome
        })
    }
}

impl<C: Copy + Serialize, S: Serialize> Table<C, S> {
    fn rows(&self, cells: &Cells<C, S>) -> Result<Vec<Value>> {
        let mut rows = Vec::new();
        for (case, samples) in cells.iter() {
            let samples = samples.iter().map(serde_json::to_value);
            let mut samples = samples.collect::<serde_json::Result<Vec<Value>>>()?;
            samples.retain(|sample| !sample.is_null());
            let case = match self.key {
                "" => serde_json::to_value(case)?,
                key => json!({ key: case }),
            };
            match self.is_summed_up && !samples.is_empty() {
                true => rows.push(joined(&case, summed_up(&samples))),
                false => rows.extend(samples.into_iter().map(|sample| joined(&case, sample))),
            }
        }
        Ok(rows)
    }
}

impl Experiment for Study {
    fn prepare(&self) -> Result<()> {
        (self.prepare)()
    }

    fn steps(&self) -> Result<usize> {
        Ok(self.tables.iter().map(|table| table.steps()).sum())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let (missing, mut all) = (Missing::default(), Outcome::default());
        for table in &self.tables {
            all = all.and(table.measure(turns, &missing)?);
        }
        (self.derive)(&mut all.measured)?;
        let book = book(self.id).ok_or_else(|| anyhow!("there is no claims/{}.json", self.id))?;
        let (figures, claims) = conclude(book, &all.measured)?;
        let facts = (self.facts)(&all.measured);
        let is_intact = all.measured.values().all(is_intact);
        let of_book = Outcome { figures, claims, facts, ..Outcome::default() };
        Ok(all.and(of_book.missing(missing).intact(is_intact)))
    }

    fn needs_networks(&self) -> bool {
        self.needs_networks
    }
}

/// Returns `true` unless a row says that bytes arrived wrong.
fn is_intact(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get("is_intact") != Some(&Value::Bool(false)) && fields.values().all(is_intact)
        }
        Value::Array(items) => items.iter().all(is_intact),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_measurement_that_fails_is_missing_if_it_is_optional() {
        #[derive(Clone, Copy, Serialize)]
        struct Case {
            n: u64,
        }
        let cases = || vec![Case { n: 1 }, Case { n: 2 }];
        let measure = |Case { n }| match n {
            1 => Ok(json!({ "twice": 2.0 })),
            _ => Err(anyhow!("no tool: install it")),
        };
        let table =
            || Table::counted("costs", cases(), |it| it.n.to_string(), measure, ("twice", "of it"));
        let (stop, missing) = (AtomicBool::new(false), Missing::default());
        let turns = Turns::new(2, true, &stop);
        let outcome = table().optional().measure(&turns, &missing).unwrap();
        assert_eq!(outcome.measured["costs"], json!([{ "n": 1, "twice": 2.0 }]));
        assert_eq!(missing.into_reasons(), ["no tool: install it"]);
        assert!(table().measure(&turns, &Missing::default()).is_err());
    }

    #[test]
    fn a_table_without_cases_needs_nothing_and_concludes_nothing() {
        let table = |name, cases| {
            let measure = |case: u32, _, _: &AtomicBool| Ok(json!({ "twice": 2 * case }));
            let table =
                Table::new((name, cases), Some(1), |it| it.to_string(), measure, Value::to_string);
            table.by("n").concluded(|cells| {
                let count = cells.samples().count().to_string();
                Ok(Outcome::default().facts(vec![("count", count)]))
            })
        };
        let study = |cases| {
            Study::of(
                "rsc",
                vec![Box::new(table("some", cases)), Box::new(table("none", Vec::new()))],
            )
        };
        let stop = AtomicBool::new(false);
        let outcome = study(vec![1, 2]).measure(&Turns::new(2, true, &stop)).unwrap();
        assert!(study(vec![1]).needs_networks && !study(Vec::new()).needs_networks);
        assert_eq!(study(vec![1, 2]).each_step(), [2, 0]);
        assert_eq!(
            Value::Object(outcome.measured),
            json!({ "some": [{ "n": 1, "twice": 2 }, { "n": 2, "twice": 4 }], "none": [] })
        );
        assert_eq!(outcome.facts, [("count", "2".to_owned())]);
    }
}
