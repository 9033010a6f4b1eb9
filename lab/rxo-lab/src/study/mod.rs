//! Experiments as tables: cases, a measurement of each case, and rows.
//!
//! A case combines a topology, traffic, a path and a policy. A [`Table`] measures its cases in turn, round after
//! round, and makes rows of them, whose fields are those of the case and of the measurement. A [`Study`] has one
//! table or more. Its book says which figures and claims follow from the rows ([`conclude`]).

mod outcome;
mod rows;

use std::sync::atomic::AtomicBool;

use anyhow::{Result, anyhow};
use rxo_demo::turns::{Cases, Turns};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub(crate) use self::outcome::Outcome;
pub(crate) use self::rows::by_fields;
use self::rows::{joined, summed_up};
use crate::claim::{Fact, book};
use crate::conclude::conclude;
use crate::missing::{Failure, Missing, NOT_MEASURED};

/// The rows of each table, by its name.
pub(crate) type Rows = Map<String, Value>;

type Derive = dyn Fn(&mut Rows) -> Result<()>;
type Facts = dyn Fn(&Rows) -> Vec<Fact>;

/// An experiment of several tables, all those that its book names. A table may have no cases.
pub(crate) struct Study {
    /// The name of its book.
    pub(crate) id: &'static str,
    pub(crate) tables: Vec<Box<dyn Measured>>,
    /// Checks for programs, and installs what private networks could not reach later.
    pub(crate) prepare: Box<dyn Fn() -> Result<()>>,
    /// Adds values that follow from the rows and that no expression can say.
    pub(crate) derive: Box<Derive>,
    /// Returns the facts in the experiment's notes.
    pub(crate) facts: Box<Facts>,
    /// The reasons why parts of the study are missing from the beginning.
    pub(crate) missing: Vec<String>,
    /// `true` if the study needs network namespaces.
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
            missing: Vec::new(),
        }
    }

    /// Returns the number of measurements.
    pub(crate) fn steps(&self) -> usize {
        self.tables.iter().map(|table| table.steps()).sum()
    }

    /// Measures every table. If the user interrupts, returns the results so far.
    ///
    /// # Errors
    /// If a network cannot be built, or a transfer breaks, and `failure` ends the experiment.
    pub(crate) fn measure(&self, turns: &Turns<'_>, failure: Failure) -> Result<Outcome> {
        let (missing, mut measured) = (Missing::from(self.missing.clone()), Rows::new());
        for table in &self.tables {
            let rows = table.measure(turns, &missing, failure)?;
            measured.insert(table.name().to_owned(), rows.into());
        }
        let derived = (self.derive)(&mut measured);
        let damaged = measured.values().filter_map(Value::as_array).flatten();
        damaged.filter_map(|row| row["damage"].as_str()).for_each(|why| missing.note(why));
        let book = book(self.id).ok_or_else(|| anyhow!("there is no claims/{}.json", self.id))?;
        let concluded = derived.and_then(|()| conclude(book, &measured));
        let (figures, claims) = missing.or_note_if(failure, concluded)?.unwrap_or_default();
        let (facts, missing) = ((self.facts)(&measured), missing.into_reasons());
        let wrong = "bytes arrived that were not sent; please report this with the results";
        let damage = (!measured.values().all(is_intact)).then(|| wrong.to_owned());
        Ok(Outcome { figures, claims, facts, missing, measured, damage })
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
    /// Number of neighbouring cases that take turns at being first.
    rotated: usize,
    /// `true` if the samples of a case are one row, with their medians and ranges.
    is_summed_up: bool,
    /// `true` if a measurement that fails is missing, and the others continue.
    is_optional: bool,
    label: Box<dyn Fn(C) -> String>,
    measure: Box<Measure<C, S>>,
    /// The field of a measurement that the progress display shows, with its unit.
    shown: (&'static str, &'static str),
    /// The field of a row that a case is; empty if a case has fields.
    key: &'static str,
}

/// Measures a case in a round. The flag is set when the user interrupts.
type Measure<C, S> = dyn Fn(C, usize, &AtomicBool) -> Result<S>;

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
        Self::new((name, cases), None, label, move |case, _, _| measure(case), shown)
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
        let table = Self::new(named, Some(rounds), label, measure, shown);
        Self { is_summed_up: true, ..table }
    }

    /// Makes a table with a row for each measurement; `rounds` is `None` for counts and virtual time. `measure` takes
    /// a case, the round, and a flag that is set when the user interrupts.
    pub(crate) fn new(
        (name, cases): (&'static str, Vec<C>),
        rounds: Option<usize>,
        label: impl Fn(C) -> String + 'static,
        measure: impl Fn(C, usize, &AtomicBool) -> Result<S> + 'static,
        shown: (&'static str, &'static str),
    ) -> Self {
        Self {
            name,
            cases,
            rounds,
            rotated: 1,
            is_summed_up: false,
            is_optional: false,
            label: Box::new(label),
            measure: Box::new(measure),
            shown,
            key: "",
        }
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
        let all = self.cases.len();
        self.in_groups_of(all)
    }

    /// Lets neighbouring cases, `count` at a time, take turns at being first.
    pub(crate) fn in_groups_of(self, count: usize) -> Self {
        Self { rotated: count, ..self }
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

/// A table, whatever its cases are.
pub(crate) trait Measured {
    fn name(&self) -> &'static str;

    fn steps(&self) -> usize;

    /// Returns `true` if the measurements take real time.
    fn is_timed(&self) -> bool;

    /// Measures every case. Returns the rows. If the user interrupts, returns the rows so far.
    ///
    /// # Errors
    /// If a measurement fails that is not optional, and `failure` ends the experiment.
    fn measure(&self, turns: &Turns<'_>, missing: &Missing, failure: Failure)
    -> Result<Vec<Value>>;
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

    fn measure(
        &self,
        turns: &Turns<'_>,
        missing: &Missing,
        failure: Failure,
    ) -> Result<Vec<Value>> {
        let failure = if self.is_optional { Failure::IsNoted } else { failure };
        let measure = |case: C, round: usize| -> Result<Option<S>> {
            missing.or_note_if(failure, (self.measure)(case, round, turns.stop()))
        };
        let line = |sample: &Option<S>| match sample {
            Some(sample) => self.line(sample),
            None => NOT_MEASURED.to_owned(),
        };
        let Self { cases, rounds, rotated, .. } = self;
        let label = |case: C| format!("{}: {}", self.name, (self.label)(case));
        let samples = match *rounds {
            Some(rounds) => {
                turns.measure(Cases { cases, rounds, rotated: *rotated }, label, measure, line)?
            }
            None => {
                let counts = turns.count(cases, label, |case| measure(case, 0), line)?;
                counts.into_iter().map(|count| vec![count]).collect()
            }
        };
        let rows = cases.iter().zip(samples).map(|(case, samples)| self.rows(case, &samples));
        Ok(rows.collect::<Result<Vec<_>>>()?.concat())
    }
}

impl<C: Copy + Serialize, S: Serialize> Table<C, S> {
    /// Returns a progress line about a measurement.
    fn line(&self, sample: &S) -> String {
        let (field, unit) = self.shown;
        match &serde_json::to_value(sample).unwrap_or_default()[field] {
            Value::Number(number) => format!("{:.3} {unit}", number.as_f64().unwrap_or_default()),
            _ => "measured".to_owned(),
        }
    }

    /// Returns the rows of one case.
    fn rows(&self, case: &C, samples: &[Option<S>]) -> Result<Vec<Value>> {
        let samples = samples.iter().map(serde_json::to_value);
        let mut samples = samples.collect::<serde_json::Result<Vec<Value>>>()?;
        samples.retain(|sample| !sample.is_null());
        let case = match self.key {
            "" => serde_json::to_value(case)?,
            key => json!({ key: case }),
        };
        Ok(match self.is_summed_up && !samples.is_empty() {
            true => vec![joined(&case, summed_up(&samples))],
            false => samples.into_iter().map(|sample| joined(&case, sample)).collect(),
        })
    }
}

/// Returns the rows of `table`; none if there is no such table.
pub(crate) fn rows_of<'r>(rows: &'r Rows, table: &str) -> &'r [Value] {
    rows.get(table).and_then(Value::as_array).map_or(&[], Vec::as_slice)
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
        let rows = table().optional().measure(&turns, &missing, Failure::Ends).unwrap();
        assert_eq!(rows, [json!({ "n": 1, "twice": 2.0 })]);
        assert_eq!(missing.into_reasons(), ["no tool: install it"]);
        assert!(table().measure(&turns, &Missing::default(), Failure::Ends).is_err());
    }

    #[test]
    fn a_study_needs_networks_if_a_table_with_cases_is_timed() {
        let table = |name, cases: Vec<u32>| -> Box<dyn Measured> {
            let measure = |case, _| {
                Ok(json!({ "twice": 2 * case, "damage": "cut off", "is_intact": case == 1 }))
            };
            let label = |case: u32| case.to_string();
            Box::new(Table::timed((name, cases), 1, label, measure, ("twice", "")).by("n"))
        };
        let study =
            |cases| Study::of("policies", vec![table("counts", cases), table("others", vec![])]);
        let stop = AtomicBool::new(false);
        let some = study(vec![1, 2]);
        assert!(some.needs_networks && !study(Vec::new()).needs_networks);
        assert_eq!(some.each_step(), [2, 0]);
        let outcome = some.measure(&Turns::new(2, true, &stop), Failure::Ends).unwrap();
        let row = |n| json!({ "n": n, "twice": 2 * n, "damage": "cut off", "is_intact": n == 1 });
        assert_eq!(
            Value::Object(outcome.measured),
            json!({ "counts": [row(1), row(2)], "others": [] })
        );
        assert_eq!((outcome.missing, outcome.damage.is_some()), (vec!["cut off".to_owned()], true));
    }

    /// In a run of all experiments, the last of a hundred measurements must not take the others with it.
    #[test]
    fn what_was_measured_before_a_failure_is_kept() {
        let measure =
            |n: u32| if n == 2 { Err(anyhow!("no link")) } else { Ok(json!({ "twice": 2 * n })) };
        let study = || {
            let table = |name, cases| -> Box<dyn Measured> {
                Box::new(
                    Table::counted(name, cases, |n: u32| n.to_string(), measure, ("twice", ""))
                        .by("n"),
                )
            };
            let tables = vec![table("counts", vec![1, 2, 3]), table("others", vec![1])];
            let derive = |_: &mut Rows| Err(anyhow!("a row is missing"));
            Study { derive: Box::new(derive), ..Study::of("policies", tables) }
        };
        let stop = AtomicBool::new(false);
        let outcome = study().measure(&Turns::new(4, true, &stop), Failure::IsNoted).unwrap();
        let row = |n| json!({ "n": n, "twice": 2 * n });
        assert_eq!(
            Value::Object(outcome.measured),
            json!({ "counts": [row(1), row(3)], "others": [row(1)] })
        );
        assert_eq!(outcome.missing, ["no link", "a row is missing"]);
        assert!(study().measure(&Turns::new(4, true, &stop), Failure::Ends).is_err());
    }
}
