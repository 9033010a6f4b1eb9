//! Makes rows of cases and samples. Pure.

use rxo_demo::stats::Spread;
use serde::Serialize;
use serde_json::{Map, Value};

/// Returns a row: the fields of `case` and of `measured`. A case without fields is none of the row.
pub(super) fn joined(case: &Value, measured: Value) -> Value {
    match (case, measured) {
        (Value::Object(case), Value::Object(measured)) => {
            Value::Object(case.clone().into_iter().chain(measured).collect())
        }
        (_, measured) => measured,
    }
}

/// Returns a name for a case: the values of its fields, numbers behind the names of theirs. What is not there or not so
/// is left out.
pub(crate) fn by_fields<C: Serialize>(case: C) -> String {
    fn parts(name: &str, value: &Value) -> Vec<String> {
        match value {
            Value::Object(fields) => fields.iter().flat_map(|(name, it)| parts(name, it)).collect(),
            Value::String(text) => vec![text.clone()],
            Value::Number(number) => vec![format!("{name} {number}")],
            Value::Bool(true) => vec![name.to_owned()],
            _ => Vec::new(),
        }
    }
    parts("", &serde_json::to_value(case).unwrap_or_default()).join(", ").trim_start().to_owned()
}

/// Returns one row for several samples: the spread of each measured number, the sum of each integer, which is a
/// count, `false` if one is `false`, the medians of the numbers in an inner object, and the first of anything else.
pub(super) fn summed_up(samples: &[Value]) -> Value {
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
        Some(Value::Bool(_)) => values.iter().all(|it| **it == Value::Bool(true)).into(),
        Some(first) if first.is_u64() => {
            values.iter().filter_map(|it| it.as_u64()).sum::<u64>().into()
        }
        Some(first) if first.is_number() => {
            Spread::of(values.iter().filter_map(|it| it.as_f64())).map_or(Value::Null, number)
        }
        Some(first) => (*first).clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_case_is_named_by_its_fields() {
        let case = json!({ "way": "fast", "receivers": 8, "stack": { "limit": null, "echo": true, "gro": false } });
        assert_eq!(by_fields(case), "receivers 8, echo, fast");
        assert_eq!((by_fields("da"), by_fields(7)), ("da".to_owned(), "7".to_owned()));
    }

    #[test]
    fn numbers_have_spreads_counts_have_sums_and_what_is_inside_has_medians() {
        let sample = |rate: f64, ns: f64| json!({ "rate": rate, "sent_again": 2, "parts": { "rx": ns }, "full_ms": null, "is_intact": ns != 6.0 });
        let row = summed_up(&[sample(1.0, 4.0), sample(3.0, 6.0), sample(2.0, 5.0)]);
        let spread = json!({ "median": 2.0, "min": 1.0, "max": 3.0 });
        assert_eq!(
            row,
            json!({ "rate": spread, "sent_again": 6, "parts": { "rx": 5.0 }, "full_ms": null, "is_intact": false })
        );
    }
}
