//! Makes series from JSON: finds the values of a row of the table, and gives them names and labels.
//!
//! This module is separate from the table because it does not depend on any counter. No side effects.

use serde_json::Value;

/// A row of the table: the path of values in the JSON, and the series that they become.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeriesRow {
    /// The path to a value in the JSON: the names of fields, with dots between them. `{label}` matches any
    /// field of an object, and the field's name becomes the label's value; `[label=field]` matches any
    /// element of a list, and the element's `field` becomes the label's value.
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    /// The help text, a sentence without its full stop.
    pub(super) help: &'static str,
}

/// The kind of series for the values of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A series that never decreases while the process lives.
    Counter,
    /// A series whose value can rise and fall (a gauge).
    Gauge,
    /// The value becomes no series, because Prometheus can compute it from other series. The help text names
    /// these series.
    LeftOut,
}

/// All series with one name, with their kind and help.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Family {
    /// The family's name, without the ending `_total` of every counter.
    pub(super) name: String,
    pub(super) is_counter: bool,
    pub(super) help: &'static str,
    pub(super) samples: Vec<Sample>,
}

/// The labels and the value of one series at this moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: Number,
}

/// The value of a sample. Counts stay integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Count(u64),
    Real(f64),
}

/// Returns the series of all values in `json` to which `rows` lead, grouped by name, in the order of the
/// rows. Allocates.
pub(super) fn of(rows: &[SeriesRow], json: &Value) -> Vec<Family> {
    let exported = rows.iter().filter(|row| row.kind != Kind::LeftOut);
    exported.filter_map(|row| family(row, json)).collect()
}

fn family(row: &SeriesRow, json: &Value) -> Option<Family> {
    let (name, scale) = row.name();
    let samples: Vec<Sample> = found(row.path, json)
        .into_iter()
        .filter_map(|FoundValue { labels, value, .. }| {
            Some(Sample { labels, value: number(value)?.scaled(scale) })
        })
        .collect();
    let is_counter = row.kind == Kind::Counter;
    (!samples.is_empty()).then_some(Family { name, is_counter, help: row.help, samples })
}

impl SeriesRow {
    /// Returns the name of the series, without `_total`, and the factor that converts the value to
    /// Prometheus's unit, seconds.
    pub(super) fn name(&self) -> (String, f64) {
        let words: Vec<String> = self.path.split('.').filter_map(word).collect();
        let name = format!("rxo_{}", words.join("_"));
        let units = [("_us", "_seconds", 1e-6), ("_s", "_seconds", 1.0)];
        for (suffix, unit, scale) in units {
            if let Some(stem) = name.strip_suffix(suffix) {
                return (format!("{stem}{unit}"), scale);
            }
        }
        (name, 1.0)
    }

    /// Returns the full name of the series, and the names of its labels.
    #[cfg(test)]
    pub(super) fn full_name(&self) -> (String, Vec<&'static str>) {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        let labels = self.path.split('.').filter_map(|part| match part.as_bytes().first() {
            Some(b'{') => part.strip_prefix('{')?.strip_suffix('}'),
            Some(b'[') => Some(part.strip_prefix('[')?.split_once('=')?.0),
            _ => None,
        });
        (self.name().0 + suffix, labels.collect())
    }
}

/// Returns the part of a series' name that one part of a path contributes: the name of the field, or the
/// label of a list. `None` for a part that contributes nothing, such as `now`.
fn word(part: &str) -> Option<String> {
    match part {
        "now" | "guests" | "workers" => None,
        _ if part.starts_with('{') => None,
        _ => match part.strip_prefix('[') {
            Some(rest) => rest.split_once('=').map(|(label, _)| label.to_owned()),
            None => Some(part.to_owned()),
        },
    }
}

/// A value that was found in the JSON, with the labels from its path.
pub(super) struct FoundValue<'a> {
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: &'a Value,
    /// The field names that the path has matched.
    #[cfg(test)]
    pub(super) at: String,
}

/// Returns all values to which `path` leads in `json`.
pub(super) fn found<'a>(path: &str, json: &'a Value) -> Vec<FoundValue<'a>> {
    let start = FoundValue {
        labels: Vec::new(),
        value: json,
        #[cfg(test)]
        at: String::new(),
    };
    path.split('.').fold(vec![start], |here, part| {
        here.into_iter().flat_map(|found| found.step(part)).collect()
    })
}

impl<'a> FoundValue<'a> {
    /// Returns the values that the part `part` of a path leads to, starting from this value.
    fn step(self, part: &str) -> Vec<Self> {
        let label = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        let list = part.strip_prefix('[').and_then(|part| part.strip_suffix(']')?.split_once('='));
        match (label, list, self.value) {
            (Some(label), _, Value::Object(fields)) => fields
                .iter()
                .map(|(name, value)| self.next(Some((label, name)), name, value))
                .collect(),
            (_, Some((label, field)), Value::Array(elements)) => elements
                .iter()
                .filter_map(|element| {
                    let name = element.get(field)?.as_str()?;
                    Some(self.next(Some((label, name)), name, element))
                })
                .collect(),
            (None, None, Value::Object(fields)) => {
                fields.get(part).map(|value| self.next(None, part, value)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    #[cfg_attr(not(test), expect(unused_variables, reason = "tests compare ways"))]
    fn next(&self, label: Option<(&str, &str)>, field: &str, value: &'a Value) -> Self {
        let mut labels = self.labels.clone();
        labels.extend(label.map(|(label, name)| (label.to_owned(), name.to_owned())));
        Self {
            labels,
            value,
            #[cfg(test)]
            at: format!("{}.{field}", self.at),
        }
    }
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(is_so) => Some(Number::Count(u64::from(*is_so))),
        Value::Number(number) => {
            number.as_u64().map(Number::Count).or_else(|| number.as_f64().map(Number::Real))
        }
        _ => None,
    }
}

impl Number {
    fn scaled(self, scale: f64) -> Self {
        match self {
            Self::Count(count) if (scale - 1.0).abs() < f64::EPSILON => Self::Count(count),
            Self::Count(count) => Self::Real(count as f64 * scale),
            Self::Real(real) => Self::Real(real * scale),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const fn row(path: &'static str, kind: Kind) -> SeriesRow {
        SeriesRow { path, kind, help: "Something" }
    }

    fn samples(row: &SeriesRow, json: &Value) -> Vec<(String, Number)> {
        let families = of(std::slice::from_ref(row), json);
        let labelled = |sample: Sample| {
            let labels: Vec<_> =
                sample.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            (labels.join(","), sample.value)
        };
        families.into_iter().flat_map(|family| family.samples).map(labelled).collect()
    }

    #[test]
    fn values_are_found_by_names_labels_and_elements() {
        let json = json!({
            "nic_in": { "bytes": u64::MAX }, "bypass": { "syn": 2, "udp": 3 }, "on": true,
            "guests": [{ "name": "a", "sent": 5, "flush": { "psh": 1 } }, { "sent": 6 }],
        });
        let rows = [
            ("nic_in.bytes", vec![("", Number::Count(u64::MAX))]),
            (
                "bypass.{reason}",
                vec![("reason=syn", Number::Count(2)), ("reason=udp", Number::Count(3))],
            ),
            ("on", vec![("", Number::Count(1))]),
            ("guests.[guest=name].sent", vec![("guest=a", Number::Count(5))]),
            ("guests.[guest=name].flush.{reason}", vec![("guest=a,reason=psh", Number::Count(1))]),
            ("nic_in", vec![]),
            ("nic_in.{x}.y", vec![]),
            ("bypass.[x=y]", vec![]),
            ("nothing.at.all", vec![]),
        ];
        for (path, expected) in rows {
            let expected: Vec<_> =
                expected.into_iter().map(|(labels, number)| (labels.to_owned(), number)).collect();
            assert_eq!(samples(&row(path, Kind::Counter), &json), expected, "{path}");
            assert_eq!(samples(&row(path, Kind::LeftOut), &json), [], "{path}");
        }
    }

    #[test]
    fn names_follow_the_way_and_the_unit() {
        let rows = [
            ("nic_in.bytes", Kind::Counter, "rxo_nic_in_bytes_total", vec![]),
            ("now.orphans", Kind::Gauge, "rxo_orphans", vec![]),
            ("elapsed_s", Kind::Gauge, "rxo_elapsed_seconds", vec![]),
            ("bypass.{reason}", Kind::Counter, "rxo_bypass_total", vec!["reason"]),
            (
                "guests.[guest=name].hold_p50_us",
                Kind::Gauge,
                "rxo_guest_hold_p50_seconds",
                vec!["guest"],
            ),
        ];
        for (path, kind, name, labels) in rows {
            assert_eq!(row(path, kind).full_name(), (name.to_owned(), labels));
        }
        let json = json!({ "hold_us": 1.5, "wait_us": 2 });
        assert_eq!(
            samples(&row("hold_us", Kind::Gauge), &json),
            [(String::new(), Number::Real(1.5e-6))]
        );
        assert_eq!(
            samples(&row("wait_us", Kind::Gauge), &json),
            [(String::new(), Number::Real(2e-6))]
        );
    }
}
