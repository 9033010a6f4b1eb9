//! Experiments whose figures and claims are data: tables of cases, a measurement of each case, and rows.
//!
//! A case combines a topology, traffic, a path and a policy. A [`Table`] measures its cases in turn, round after
//! round, and makes rows of them, whose fields are those of the case and of the measurement. A [`Study`] has one
//! table or more; what follows from the rows stands in its book ([`conclude`]).

use anyhow::{Result, anyhow};
use rxo_demo::stats::Spread;
use rxo_demo::turns::{Cases, Turns};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::claim::{Fact, book};
use crate::conclude::conclude;
use crate::missing::{Missing, NOT_MEASURED};
use crate::runner::{Experiment, Outcome};

/// The rows of each table, by its name.
pub(crate) type Rows = Map<String, Value>;

type Derive = dyn Fn(&mut Rows) -> Result<()>;
type Facts = dyn Fn(&Rows) -> Vec<Fact>;

/// An experiment of tables: all that its book names, of which some may have no cases.
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

/// Cases, and the measurement of one.
pub(crate) struct Table<C, S> {
    name: &'static str,
    cases: Vec<C>,
    /// Number of rounds, each of which measures every case once; `None` for counts and virtual time.
    rounds: Option<usize>,
    rotated: usize,
    /// `true` if the samples of a case are one row, with their medians and ranges.
    is_summed_up: bool,
    /// `true` if a measurement that fails is missing, and the others continue.
    is_optional: bool,
    label: Box<dyn Fn(C) -> String>,
    measure: Box<dyn Fn(C, usize) -> Result<S>>,
    shown: (&'static str, &'static str),
    /// The field of a row that a case is; empty if a case has fields.
    key: &'static str,
}

impl<C: Copy, S> Table<C, S> {
    /// Makes a table `name` of counts or virtual time. `label` names a case, `shown` is a field of the
    /// measurement with its unit, for the progress display.
    pub(crate) fn counted(
        name: &'static str,
        cases: Vec<C>,
        label: impl Fn(C) -> String + 'static,
        measure: impl Fn(C) -> Result<S> + 'static,
        shown: (&'static str, &'static str),
    ) -> Self {
        Self {
            rounds: None,
            is_summed_up: false,
            ..Self::timed((name, cases), 1, label, move |case, _| measure(case), shown)
        }
    }

    /// Makes a table of measurements that take real time; each case is measured in every round and has one row.
    pub(crate) fn timed(
        (name, cases): (&'static str, Vec<C>),
        rounds: usize,
        label: impl Fn(C) -> String + 'static,
        measure: impl Fn(C, usize) -> Result<S> + 'static,
        shown: (&'static str, &'static str),
    ) -> Self {
        Self {
            name,
            cases,
            rounds: Some(rounds),
            rotated: 1,
            is_summed_up: true,
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

    /// Lets `count` neighbouring cases take turns at being first.
    pub(crate) fn rotated(self, count: usize) -> Self {
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

    /// Measures every case, and returns the rows. If the user interrupts, returns the rows so far.
    ///
    /// # Errors
    /// If a measurement fails that is not optional.
    fn rows(&self, turns: &Turns<'_>, missing: &Missing) -> Result<Vec<Value>>;
}

impl<C: Copy + Serialize, S: Serialize> Measured for Table<C, S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn steps(&self) -> usize {
        self.cases.len() * self.rounds.unwrap_or(1)
    }

    fn rows(&self, turns: &Turns<'_>, missing: &Missing) -> Result<Vec<Value>> {
        let measure = |case: C, round: usize| -> Result<Value> {
            let measured = (self.measure)(case, round);
            if self.is_optional {
                return Ok(serde_json::to_value(missing.or_note(measured))?);
            }
            Ok(serde_json::to_value(measured?)?)
        };
        let (field, unit) = self.shown;
        let line = |sample: &Value| match &sample[field] {
            Value::Number(number) => format!("{:.3} {unit}", number.as_f64().unwrap_or_default()),
            _ if sample.is_null() => NOT_MEASURED.to_owned(),
            _ => "measured".to_owned(),
        };
        let Self { cases, rotated, label, .. } = self;
        let samples = match self.rounds {
            Some(rounds) => {
                let cases = Cases { cases, rounds, rotated: *rotated };
                turns.measure(cases, label, measure, line)?
            }
            None => {
                let counts = turns.count(cases, label, |case| measure(case, 0), line)?;
                counts.into_iter().map(|count| vec![count]).collect()
            }
        };
        let mut rows = Vec::new();
        for (case, mut samples) in cases.iter().zip(samples) {
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

/// Returns a row: the fields of `case` and of `measured`. A case without fields is none of the row.
fn joined(case: &Value, measured: Value) -> Value {
    match (case, measured) {
        (Value::Object(case), Value::Object(measured)) => {
            Value::Object(case.clone().into_iter().chain(measured).collect())
        }
        (_, measured) => measured,
    }
}

/// Returns one row for several samples: the spread of each measured number, the sum of each integer, which is a
/// count, the medians of the numbers in an inner object, and the first of anything else.
fn summed_up(samples: &[Value]) -> Value {
    by_field(samples, |spread| serde_json::to_value(spread).unwrap_or_default())
}

fn by_field(samples: &[Value], number: fn(Spread) -> Value) -> Value {
    let of = |name: &str| -> Vec<&Value> {
        samples.iter().map(|sample| &sample[name]).filter(|value| !value.is_null()).collect()
    };
    let names = samples.iter().filter_map(Value::as_object).take(1).flat_map(Map::keys);
    names.map(|name| (name.clone(), together(&of(name), number))).collect()
}

fn together(values: &[&Value], number: fn(Spread) -> Value) -> Value {
    match values.first() {
        None => Value::Null,
        Some(Value::Object(_)) => {
            let inner: Vec<Value> = values.iter().copied().cloned().collect();
            by_field(&inner, |spread| spread.median.into())
        }
        Some(first) if first.is_u64() => {
            values.iter().filter_map(|it| it.as_u64()).sum::<u64>().into()
        }
        Some(first) if first.is_number() => {
            Spread::of(values.iter().filter_map(|it| it.as_f64())).map_or(Value::Null, number)
        }
        Some(first) => (*first).clone(),
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
        let (missing, mut rows) = (Missing::default(), Rows::new());
        for table in &self.tables {
            let of_table = table.rows(turns, &missing)?;
            rows.insert(table.name().to_owned(), of_table.into());
        }
        (self.derive)(&mut rows)?;
        let book = book(self.id).ok_or_else(|| anyhow!("there is no claims/{}.json", self.id))?;
        let (figures, claims) = conclude(book, &rows)?;
        let (is_intact, facts) = (rows.values().all(is_intact), (self.facts)(&rows));
        let outcome = Outcome { figures, claims, measured: rows, ..Outcome::default() };
        Ok(outcome.facts(facts).missing(missing).intact(is_intact))
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

/// Returns each value once, in the order of its first occurrence: what several parts share is measured once.
pub(crate) fn once<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    values.into_iter().fold(Vec::new(), |mut all, value| {
        if !all.contains(&value) {
            all.push(value);
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn numbers_have_spreads_counts_have_sums_and_what_is_inside_has_medians() {
        let sample = |rate: f64, ns: f64| json!({ "rate": rate, "sent_again": 2, "parts": { "rx": ns }, "full_ms": null });
        let row = summed_up(&[sample(1.0, 4.0), sample(3.0, 6.0), sample(2.0, 5.0)]);
        let spread = json!({ "median": 2.0, "min": 1.0, "max": 3.0 });
        assert_eq!(
            row,
            json!({ "rate": spread, "sent_again": 6, "parts": { "rx": 5.0 }, "full_ms": null })
        );
    }

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
        assert_eq!(
            table().optional().rows(&turns, &missing).unwrap(),
            [json!({ "n": 1, "twice": 2.0 })]
        );
        assert_eq!(missing.into_reasons(), ["no tool: install it"]);
        assert!(table().rows(&turns, &Missing::default()).is_err());
    }
}
