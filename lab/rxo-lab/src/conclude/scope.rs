//! Evaluates expressions over the measurements of one run. Pure.
//!
//! Every value is a list of JSON values: a measurement that is missing is an empty one, and so is whatever
//! follows from it. An object with a median, a least and a most value is a number with its range, which
//! survives arithmetic with numbers that have none.

use std::slice;

use anyhow::{Context, Result, bail};
use rxo_demo::stats::Spread;
use rxo_testbed::median_bounds;
use serde_json::{Map, Value, json};

use super::expression::{Condition, Expression, Step, Word, parse};
use crate::claim::{Book, Ours};

/// The names that expressions can use: measurements, the book's tables and definitions, and variables.
#[derive(Clone)]
pub(super) struct Scope<'m> {
    pub(super) book: &'static Book,
    measured: &'m Map<String, Value>,
    variables: Map<String, Value>,
}

/// A number, with its range if it has one.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) value: f64,
    pub(super) range: Option<(f64, f64)>,
    count: usize,
}

impl From<Point> for Ours {
    fn from(Point { value, range, count }: Point) -> Self {
        let (low, high) = range.unwrap_or((value, value));
        Self { value, low, high, count }
    }
}

impl<'m> Scope<'m> {
    pub(super) fn new(book: &'static Book, measured: &'m Map<String, Value>) -> Self {
        Self { book, measured, variables: Map::new() }
    }

    /// Returns this scope with more variables.
    pub(super) fn with(&self, variables: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut scope = self.clone();
        scope.variables.extend(variables);
        scope
    }

    /// Returns the values of the expression `text`.
    ///
    /// # Errors
    /// If `text` is no expression, or names a table, a definition or a function that does not exist.
    pub(super) fn values(&self, text: &str) -> Result<Vec<Value>> {
        parse(text).and_then(|parsed| self.evaluate(&parsed)).with_context(|| {
            format!("claims/{}.json: the expression `{text}`", self.book.experiment)
        })
    }

    /// Returns the number that the expression `text` is; `None` if it is missing.
    ///
    /// # Errors
    /// The errors of [`values`](Self::values).
    pub(super) fn point(&self, text: &str) -> Result<Option<Point>> {
        Ok(point(&self.values(text)?).filter(|point| point.value.is_finite()))
    }

    /// Returns the numbers that the expression `text` is.
    ///
    /// # Errors
    /// The errors of [`values`](Self::values).
    pub(super) fn numbers(&self, text: &str) -> Result<Vec<f64>> {
        Ok(self.values(text)?.iter().filter_map(Point::of).map(|point| point.value).collect())
    }

    pub(super) fn evaluate(&self, expression: &Expression) -> Result<Vec<Value>> {
        Ok(match expression {
            Expression::Number(number) => vec![Value::from(*number)],
            Expression::Text(text) => vec![Value::from(text.as_str())],
            Expression::Name(name) => flat(self.root(name)?),
            Expression::Of(root, steps) => {
                let begin = self.evaluate(root)?;
                steps.iter().fold(begin, |values, step| self.step(values, step))
            }
            Expression::Binary(operator, sides) => {
                let [left, right] = &**sides;
                combined(*operator, &self.evaluate(left)?, &self.evaluate(right)?)
            }
            Expression::Call(name, arguments) => self.call(name, arguments)?,
        })
    }

    fn root(&self, root: &Word) -> Result<Vec<Value>> {
        let name = match root {
            Word::Variable(name) => {
                return Ok(self.variables.get(name).cloned().into_iter().collect());
            }
            Word::Plain(name) => name,
        };
        match self.measured.get(name).or_else(|| self.book.tables.get(name)) {
            Some(table) => Ok(vec![table.clone()]),
            None => bail!("there is no table {name}"),
        }
    }

    fn step(&self, values: Vec<Value>, step: &Step) -> Vec<Value> {
        match step {
            Step::Field(word) => {
                let Some(name) = self.word(word) else { return Vec::new() };
                let name = text(&name);
                flat(values.iter().filter_map(|value| value.get(&name)).cloned().collect())
            }
            Step::Where(conditions) => values
                .into_iter()
                .filter(|row| conditions.iter().all(|condition| self.holds(row, condition)))
                .collect(),
        }
    }

    /// Returns the value of a word; `None` for a variable that is not bound.
    fn word(&self, word: &Word) -> Option<Value> {
        match word {
            Word::Plain(text) => Some(Value::from(text.as_str())),
            Word::Variable(name) => self.variables.get(name).cloned(),
        }
    }

    fn holds(&self, row: &Value, Condition { field, operator, value }: &Condition) -> bool {
        let found = field.split('.').try_fold(row, |row, name| row.get(name));
        let Some(wanted) = self.word(value) else { return false };
        let found = text(found.unwrap_or(&Value::Null));
        let wanted = text(&wanted);
        let numbers = found.parse::<f64>().ok().zip(wanted.parse::<f64>().ok());
        let is_equal = numbers.map_or(found == wanted, |(one, other)| one == other);
        match *operator {
            "=" => is_equal,
            "!=" => !is_equal,
            "<=" => numbers.is_some_and(|(one, other)| one <= other),
            ">=" => numbers.is_some_and(|(one, other)| one >= other),
            "<" => numbers.is_some_and(|(one, other)| one < other),
            _ => numbers.is_some_and(|(one, other)| one > other),
        }
    }

    fn call(&self, name: &str, arguments: &[Expression]) -> Result<Vec<Value>> {
        match (name, arguments) {
            ("each", [rows, of]) => {
                let rows = self.evaluate(rows)?;
                let of_rows = rows.into_iter().filter_map(|row| match row {
                    Value::Object(fields) => Some(self.with(fields).evaluate(of)),
                    _ => None,
                });
                return Ok(of_rows.collect::<Result<Vec<_>>>()?.concat());
            }
            ("most", [rows, of]) => {
                let mut most: Option<(f64, Value)> = None;
                for row in self.evaluate(rows)? {
                    let Value::Object(fields) = &row else { continue };
                    let of = point(&self.with(fields.clone()).evaluate(of)?);
                    if let Some(Point { value, .. }) = of
                        && most.as_ref().is_none_or(|(most, _)| value >= *most)
                    {
                        most = Some((value, row));
                    }
                }
                return Ok(most.into_iter().map(|(_, row)| row).collect());
            }
            ("either", all) => {
                let all = all.iter().map(|of| self.evaluate(of)).collect::<Result<Vec<_>>>()?;
                return Ok(all.into_iter().find(|it| !it.is_empty()).unwrap_or_default());
            }
            ("values", [objects]) => {
                let objects = self.evaluate(objects)?;
                let values = objects.iter().filter_map(Value::as_object).flat_map(Map::values);
                return Ok(flat(values.cloned().collect()));
            }
            _ => {}
        }
        let given = arguments.iter().map(|of| self.evaluate(of)).collect::<Result<Vec<_>>>()?;
        if let Some((parameters, of)) = self.definition(name) {
            let named = parameters.zip(given);
            let bound = named.filter_map(|(name, values)| Some((name, values.into_iter().next()?)));
            return self.with(bound).values(of);
        }
        // Half of a claim must not decide it.
        let lacks_one = given.iter().any(Vec::is_empty);
        let all: Vec<f64> =
            given.iter().flatten().filter_map(Point::of).map(|point| point.value).collect();
        let ends = |all: &[f64], of: fn(f64, f64) -> f64| all.iter().copied().reduce(of);
        Ok(match name {
            "count" => vec![Value::from(given.concat().len())],
            "min" | "max" if lacks_one => Vec::new(),
            "min" => number(ends(&all, f64::min)),
            "max" => number(ends(&all, f64::max)),
            "sum" => number(ends(&all, |one, other| one + other)),
            "abs" => number(all.first().map(|value| value.abs())),
            "mean" => {
                number(ends(&all, |one, other| one + other).map(|sum| sum / all.len() as f64))
            }
            "median" => number(Spread::of(all).map(|spread| spread.median)),
            "spread" => Spread::of(all)
                .map(|it| ranged(it.median, (it.min, it.max), 1))
                .into_iter()
                .collect(),
            "range" => match (&all[..], given.get(1).and_then(|of| point(of))) {
                (&[value, low, high], _) => vec![ranged(value, (low, high), 1)],
                (&[value, _], Some(Point { range: Some(range), count, .. })) => {
                    vec![ranged(value, range, count)]
                }
                _ => Vec::new(),
            },
            "ratios" => match &given[..] {
                [some, others] => some
                    .iter()
                    .zip(others)
                    .flat_map(|(one, other)| {
                        combined('/', slice::from_ref(one), slice::from_ref(other))
                    })
                    .collect(),
                _ => Vec::new(),
            },
            "words" => match all[..] {
                [value, decimals] if !lacks_one => {
                    let (decimals, rest) = (decimals as usize, given.concat());
                    let rest: String = rest[2..].iter().map(text).collect();
                    vec![format!("{value:.decimals$}{rest}").into()]
                }
                _ => Vec::new(),
            },
            "growth" => growth(&all).into_iter().collect(),
            "certain" => certain(&all).into_iter().collect(),
            _ => bail!("there is no definition and no function {name}"),
        })
    }

    /// Returns the parameters and the expression of a definition, which is written as `name(a b)`.
    fn definition(
        &self,
        name: &str,
    ) -> Option<(impl Iterator<Item = String> + use<>, &'static str)> {
        let book = self.book;
        book.define.iter().find_map(|(head, of)| {
            let parameters = head.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
            let parameters: Vec<_> = parameters.split_whitespace().map(str::to_owned).collect();
            Some((parameters.into_iter(), of.as_str()))
        })
    }
}

impl Point {
    fn of(value: &Value) -> Option<Self> {
        if let Some(value) = value.as_f64() {
            return Some(Self { value, range: None, count: 1 });
        }
        let field = |name| value.get(name)?.as_f64();
        let count = field("count").unwrap_or(1.0) as usize;
        Some(Self { value: field("median")?, range: field("min").zip(field("max")), count })
    }
}

fn point(values: &[Value]) -> Option<Point> {
    match values {
        [value] => Point::of(value),
        _ => None,
    }
}

fn combined(operator: char, left: &[Value], right: &[Value]) -> Vec<Value> {
    let Some((left, right)) = point(left).zip(point(right)) else { return Vec::new() };
    let of = |one: f64, other: f64| match operator {
        '+' => one + other,
        '-' => one - other,
        '*' => one * other,
        _ => one / other,
    };
    let value = of(left.value, right.value);
    let range = match (left.range, right.range) {
        (Some((low, high)), None) => Some((of(low, right.value), of(high, right.value))),
        (None, Some((low, high))) => Some((of(left.value, low), of(left.value, high))),
        _ => None,
    };
    match range {
        Some((one, other)) => {
            vec![ranged(value, (one.min(other), one.max(other)), left.count.max(right.count))]
        }
        None => number(Some(value)),
    }
}

/// Returns the median of `values` with its bounds at 95 %; too few values bound nothing.
fn certain(values: &[f64]) -> Option<Value> {
    let median = Spread::of(values.iter().copied())?.median;
    Some(ranged(median, median_bounds(values).unwrap_or((0.0, f64::MAX)), values.len()))
}

/// Returns the growth from the first of `values` to the last, with the least step as its lower end.
fn growth(values: &[f64]) -> Option<Value> {
    let least = values.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min)?;
    let grown = values.last()? - values.first()?;
    Some(ranged(grown, (least, grown), values.len()))
}

fn ranged(value: f64, (low, high): (f64, f64), count: usize) -> Value {
    json!({ "median": value, "min": low, "max": high, "count": count })
}

fn number(value: Option<f64>) -> Vec<Value> {
    value.filter(|value| value.is_finite()).map(Value::from).into_iter().collect()
}

/// Returns the items of lists, and of lists in them; without what is null.
fn flat(values: Vec<Value>) -> Vec<Value> {
    let items = |value| match value {
        Value::Array(items) => flat(items),
        Value::Null => Vec::new(),
        value => vec![value],
    };
    values.into_iter().flat_map(items).collect()
}

/// Returns a value as conditions and texts have it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(String::new, |it| it.to_string()),
        other => other.to_string(),
    }
}
