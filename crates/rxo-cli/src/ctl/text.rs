//! Formats answers of a running process as text: one value per line, indented below the object that contains
//! it.

use serde_json::Value;

use crate::numbers::grouped;

/// Formats any JSON answer.
pub(super) fn of(answer: &Value) -> String {
    let mut lines = Vec::new();
    add(&mut lines, 0, answer);
    lines.join("\n")
}

/// Formats the answer to `help`: each request's usage and purpose.
pub(super) fn help(answer: &Value) -> String {
    let rows = answer["requests"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let rows: Vec<_> = rows.iter().map(|row| (text(row, "usage"), text(row, "help"))).collect();
    let width = rows.iter().map(|(usage, _)| usage.chars().count()).max().unwrap_or(0);
    let lines = rows.iter().map(|(usage, help)| format!("{usage:<width$}  {help}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn add(lines: &mut Vec<String>, depth: usize, value: &Value) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if is_nested(value) {
                    lines.push(format!("{indent}{name}"));
                    add(lines, depth + 1, value);
                } else {
                    let width = NAME_WIDTH.saturating_sub(indent.len());
                    lines.push(format!("{indent}{name:<width$}  {}", shown(value)));
                }
            }
        }
        Value::Array(rows) => rows.iter().for_each(|row| add(lines, depth, row)),
        value => lines.push(format!("{indent}{}", shown(value))),
    }
}

/// Returns `true` if the value is formatted on lines of its own, below its name.
fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(rows) => rows.iter().any(Value::is_object),
        _ => false,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64().map_or(number.to_string(), grouped),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(_) => "none".to_owned(),
        Value::Bool(is) => is.to_string(),
    }
}

const NAME_WIDTH: usize = 28;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_stand_under_what_they_belong_to() {
        let answer = json!({
            "bytes": 1_234_567, "flush": {}, "nic_in": { "packets": 3 }, "names": ["a", "b"],
            "engines": [{ "engine": "web" }, { "engine": "db", "next": null }],
        });
        let expected = "bytes                         1,234,567\n\
                        engines\n\
                        \u{20} engine                      web\n\
                        \u{20} engine                      db\n\
                        \u{20} next                        none\n\
                        flush                         none\n\
                        names                         a, b\n\
                        nic_in\n\
                        \u{20} packets                     3";
        assert_eq!(of(&answer), expected);
    }

    #[test]
    fn help_is_a_line_a_request() {
        let row = |usage: &str| json!({ "request": "x", "usage": usage, "help": "shows it" });
        let answer = json!({ "requests": [row("counters"), row("hold[=TIME]")] });
        assert_eq!(help(&answer), "counters     shows it\nhold[=TIME]  shows it");
    }
}
