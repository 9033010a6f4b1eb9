//! The comparison of two documents. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Difference;

/// A compared value, with its basis.
#[derive(Clone, Debug, PartialEq)]
struct Compared {
    basis: String,
    value: Value,
}

/// Returns every difference between the documents, in the order of names.
pub(super) fn differences(results: &Value, expected: &Value) -> Vec<Difference> {
    let (found, wanted) = (values(results), values(expected));
    let names = wanted.keys().chain(found.keys().filter(|name| !wanted.contains_key(*name)));
    let each = names.filter_map(|name| difference(name, found.get(name), wanted.get(name)));
    let judged = |it: Difference| Difference {
        is_judged: it.is_judged && !is_borderline(&it.what, &found, &wanted),
        ..it
    };
    each.map(judged).collect()
}

/// Returns `true` for a verdict whose value differs by no more than is permitted: it stands so close to its bound that
/// it may turn. With the same value, another verdict means another rule.
fn is_borderline(
    name: &str,
    found: &BTreeMap<String, Compared>,
    wanted: &BTreeMap<String, Compared>,
) -> bool {
    let value = name.strip_suffix(" status").map(|id| format!("{id} value"));
    let pair = value.and_then(|name| found.get(&name).zip(wanted.get(&name)));
    pair.is_some_and(|(one, other)| {
        let tolerance = tolerance(&other.basis).unwrap_or_default();
        let differs = one.value != other.value && other.value.is_number();
        differs && tolerance > 0.0 && is_near(&one.value, &other.value, tolerance)
    })
}

fn difference(
    name: &str,
    found: Option<&Compared>,
    expected: Option<&Compared>,
) -> Option<Difference> {
    let basis = &expected.or(found)?.basis;
    let tolerance = tolerance(basis);
    let is_same = match (found, expected) {
        (Some(found), Some(expected)) => {
            is_near(&found.value, &expected.value, tolerance.unwrap_or_default())
        }
        _ => false,
    };
    let shown = |it: Option<&Compared>| it.map_or("nothing".to_owned(), |it| it.value.to_string());
    (!is_same).then(|| Difference {
        what: name.to_owned(),
        basis: basis.clone(),
        is_judged: tolerance.is_some(),
        expected: shown(expected),
        found: shown(found),
    })
}

/// Returns the permitted difference of a basis, as a share; `None` if values are not judged.
fn tolerance(basis: &str) -> Option<f64> {
    match basis {
        "count" => Some(0.02),
        "virtual-time" => Some(0.0),
        _ => None,
    }
}

/// Returns `true` if all numbers are as near as `tolerance` permits, and everything else is the same.
fn is_near(found: &Value, expected: &Value, tolerance: f64) -> bool {
    match (found, expected) {
        (Value::Number(one), Value::Number(other)) => {
            let [one, other] = [one, other].map(|it| it.as_f64().unwrap_or(f64::NAN));
            (one - other).abs() <= tolerance * other.abs() + ROUNDING
        }
        (Value::Array(some), Value::Array(others)) => {
            some.len() == others.len()
                && some.iter().zip(others).all(|(one, other)| is_near(one, other, tolerance))
        }
        _ => found == expected,
    }
}

/// Returns the verdict and the value of each claim, and x and the values of each series, by name.
fn values(document: &Value) -> BTreeMap<String, Compared> {
    let mut all = BTreeMap::new();
    let mut add = |name: String, basis: &Value, value: Value| {
        let basis = basis.as_str().unwrap_or("count").to_owned();
        all.insert(name, Compared { basis, value });
    };
    for experiment in list(&document["experiments"]) {
        for claim in list(&experiment["claims"]) {
            let id = text(&claim["id"]);
            add(format!("{id} status"), &claim["basis"], claim["status"].clone());
            add(format!("{id} value"), &claim["basis"], claim["ours"]["value"].clone());
        }
        for figure in list(&experiment["figures"]) {
            let name = format!("{} {}", text(&experiment["id"]), text(&figure["id"]));
            add(format!("{name} x"), &figure["basis"], figure["x"].clone());
            for series in list(&figure["series"]) {
                let name = format!("{name} {}", text(&series["name"]));
                add(name, &figure["basis"], series["values"].clone());
            }
        }
    }
    all
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The difference that decimal notation may cause.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(basis: &str, value: f64, status: &str) -> Value {
        json!({ "experiments": [{
            "id": "xen",
            "claims": [
                { "id": "xen.a", "basis": basis, "status": status, "ours": { "value": value } },
            ],
            "figures": [{
                "id": "table-v", "basis": basis, "x": ["LRO"],
                "series": [{ "name": "here", "values": [value, null] }],
            }],
        }] })
    }

    /// Returns the names of judged and of other differences.
    fn names(found: &Value, expected: &Value) -> [Vec<String>; 2] {
        let (judged, other): (Vec<_>, Vec<_>) =
            differences(found, expected).into_iter().partition(|it| it.is_judged);
        [judged, other].map(|all| all.into_iter().map(|it| it.what).collect())
    }

    #[test]
    fn the_basis_decides_how_far_a_value_may_be_off() {
        let expected = |basis| document(basis, 100.0, "weaker");
        let found = |basis, value| names(&document(basis, value, "weaker"), &expected(basis));
        let both = ["xen table-v here", "xen.a value"].map(str::to_owned).to_vec();
        let none = Vec::<String>::new;
        assert_eq!(found("count", 101.9), [none(), none()]);
        assert_eq!(found("count", 102.1), [both.clone(), none()]);
        assert_eq!(found("virtual-time", 100.0), [none(), none()]);
        assert_eq!(found("virtual-time", 100.01), [both.clone(), none()]);
        assert_eq!(found("live", 150.0), [none(), both]);
    }

    #[test]
    fn a_verdict_that_turns_within_the_tolerance_is_not_judged() {
        let found = |basis, value| {
            names(&document(basis, value, "contradicted"), &document(basis, 1.0, "reproduced"))
        };
        let status = vec!["xen.a status".to_owned()];
        assert_eq!(found("count", 1.01), [vec![], status.clone()]);
        assert!(found("count", 1.03)[0].contains(&status[0]));
        assert!(found("virtual-time", 1.0)[0].contains(&status[0]));
    }

    #[test]
    fn another_verdict_and_a_missing_claim_are_differences() {
        let expected = document("count", 1.0, "weaker");
        let judged = |found: &Value| names(found, &expected)[0].clone();
        assert_eq!(judged(&document("count", 1.0, "exceeds")), ["xen.a status"]);
        assert_eq!(judged(&json!({ "experiments": [] })).len(), 4);
        let all = differences(&expected, &json!({ "experiments": [] }));
        assert_eq!(all.len(), 4, "what is new is not expected either");
        assert_eq!(all[3].text(), "xen.a value: 1.0, expected nothing (count)");
    }
}
