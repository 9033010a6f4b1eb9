//! The functions of expressions, over lists of values. Pure.

use std::slice;

use anyhow::{Result, bail};
use rxo_demo::stats::Spread;
use rxo_testbed::median_bounds;
use serde_json::{Value, json};

use crate::claim::Ours;

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

/// Returns the value of the function `name`.
///
/// # Errors
/// If there is no such function.
pub(super) fn apply(name: &str, given: &[Vec<Value>]) -> Result<Vec<Value>> {
    // Half of a claim must not decide it.
    let lacks_one = given.iter().any(Vec::is_empty);
    let all: Vec<f64> =
        given.iter().flatten().filter_map(Point::of).map(|point| point.value).collect();
    let reduced = |of: fn(f64, f64) -> f64| all.iter().copied().reduce(of);
    let sum = || reduced(|one, other| one + other);
    let one = |value: Option<Value>| value.into_iter().collect();
    Ok(match name {
        "count" => vec![Value::from(given.concat().len())],
        "min" | "max" if lacks_one => Vec::new(),
        "min" => number(reduced(f64::min)),
        "max" => number(reduced(f64::max)),
        "sum" => number(sum()),
        "abs" => number(all.first().map(|value| value.abs())),
        "mean" => number(sum().map(|sum| sum / all.len() as f64)),
        "median" => number(Spread::of(all).map(|spread| spread.median)),
        "spread" => one(Spread::of(all).map(|it| ranged(it.median, (it.min, it.max), 1))),
        "range" => one(range(&all, given)),
        "ratios" => ratios(given),
        "words" => one(words(&all, given).filter(|_| !lacks_one)),
        "growth" => one(growth(&all)),
        "certain" => one(certain(&all)),
        _ => bail!("there is no definition and no function {name}"),
    })
}

/// Returns a value with a range: both ends, or that of another value.
fn range(all: &[f64], given: &[Vec<Value>]) -> Option<Value> {
    match (all, given.get(1).and_then(|of| point(of))) {
        (&[value, low, high], _) => Some(ranged(value, (low, high), 1)),
        (&[value, _], Some(Point { range: Some(range), count, .. })) => {
            Some(ranged(value, range, count))
        }
        _ => None,
    }
}

/// Returns the quotient of each pair of values of two lists.
fn ratios(given: &[Vec<Value>]) -> Vec<Value> {
    let [some, others] = given else { return Vec::new() };
    let ratio = |(one, other)| combined('/', slice::from_ref(one), slice::from_ref(other));
    some.iter().zip(others).flat_map(ratio).collect()
}

/// Returns a text: a number with so many decimals, and the texts behind it.
fn words(all: &[f64], given: &[Vec<Value>]) -> Option<Value> {
    let &[value, decimals] = all else { return None };
    let (decimals, rest) = (decimals as usize, given.get(2..)?.concat());
    let rest: String = rest.iter().map(text).collect();
    Some(format!("{value:.decimals$}{rest}").into())
}

impl Point {
    pub(super) fn of(value: &Value) -> Option<Self> {
        if let Some(value) = value.as_f64() {
            return Some(Self { value, range: None, count: 1 });
        }
        let field = |name| value.get(name)?.as_f64();
        let count = field("count").unwrap_or(1.0) as usize;
        Some(Self { value: field("median")?, range: field("min").zip(field("max")), count })
    }
}

pub(super) fn point(values: &[Value]) -> Option<Point> {
    match values {
        [value] => Point::of(value),
        _ => None,
    }
}

pub(super) fn combined(operator: char, left: &[Value], right: &[Value]) -> Vec<Value> {
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
pub(super) fn flat(values: Vec<Value>) -> Vec<Value> {
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
