//! A cell of a table as a Python object, and as HTML.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampNanosecondType, UInt16Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use rxo_console::numbers::grouped;
use rxo_trace::report::utc;

/// The value of a cell.
pub(crate) enum Cell<'a> {
    Missing,
    Count(u64),
    /// A port, or a VLAN identifier.
    Small(u16),
    Number(f64),
    Flag(bool),
    Text(&'a str),
    /// Nanoseconds since 1970 UTC.
    Time(i64),
}

impl<'a> Cell<'a> {
    /// Returns the value of `column` at index `row`. Tables of reports have no other types than these.
    pub(crate) fn of(column: &'a ArrayRef, row: usize) -> Self {
        if column.is_null(row) {
            return Self::Missing;
        }
        match column.data_type() {
            DataType::UInt64 => Self::Count(column.as_primitive::<UInt64Type>().value(row)),
            DataType::UInt16 => Self::Small(column.as_primitive::<UInt16Type>().value(row)),
            DataType::Float64 => Self::Number(column.as_primitive::<Float64Type>().value(row)),
            DataType::Boolean => Self::Flag(column.as_boolean().value(row)),
            DataType::Timestamp(..) => {
                Self::Time(column.as_primitive::<TimestampNanosecondType>().value(row))
            }
            _ => column
                .as_string_opt::<i32>()
                .map_or(Self::Missing, |texts| Self::Text(texts.value(row))),
        }
    }

    /// Returns the value as Python has it. A time is in UTC, cut to microseconds, which is what Python has.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match *self {
            Self::Missing => Ok(py.None().into_bound(py)),
            Self::Count(count) => count.into_bound_py_any(py),
            Self::Small(small) => small.into_bound_py_any(py),
            Self::Number(number) => number.into_bound_py_any(py),
            Self::Flag(flag) => flag.into_bound_py_any(py),
            Self::Text(text) => text.into_bound_py_any(py),
            Self::Time(ns) => {
                let datetime = py.import("datetime")?;
                let utc = datetime.getattr("timezone")?.getattr("utc")?;
                let kind = datetime.getattr("datetime")?;
                let start = kind.call_method1("fromtimestamp", (0, utc))?;
                let since = datetime.getattr("timedelta")?.call1((0, 0, ns.div_euclid(1_000)))?;
                start.add(since)
            }
        }
    }

    /// Returns the value as a cell of an HTML table, with numbers as reports have them.
    pub(crate) fn html(&self) -> String {
        let (text, is_text) = match *self {
            Self::Missing => (String::new(), true),
            Self::Count(count) => (grouped(count), false),
            Self::Small(small) => (small.to_string(), false),
            Self::Number(number) => (format!("{number:.3}"), false),
            Self::Flag(flag) => ((if flag { "yes" } else { "no" }).to_owned(), true),
            Self::Text(text) => (escaped(text), true),
            Self::Time(ns) => (utc(ns.cast_unsigned()), true),
        };
        let side = if is_text { "left" } else { "right" };
        format!("<td style=\"text-align:{side};white-space:nowrap\">{text}</td>")
    }
}

/// Returns the text without characters that mean something in HTML: names of files are anyone's.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
