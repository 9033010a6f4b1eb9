//! The answer to a control request: its name, and the result or an error.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::VERSION;

/// The answer to a control request. On the socket it is one line of JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The name of the request; empty if the line was not a request.
    pub request: String,
    /// The result of the request, or an error message in one line with the remedy.
    pub result: Result<Value, String>,
}

/// Error: a line is not an answer to a control request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("what listens there does not answer as rxo does; give the socket of --control")]
pub struct BadAnswer;

impl Answer {
    /// Formats the answer as a line, without its line end: `{"version":1,"request":"hold","ok":...}`, or `"error"`
    /// instead of `"ok"`.
    #[must_use]
    pub fn line(&self) -> String {
        let mut fields = Map::new();
        fields.insert("version".into(), VERSION.into());
        fields.insert("request".into(), self.request.clone().into());
        let (field, value) = match &self.result {
            Ok(value) => ("ok", value.clone()),
            Err(error) => ("error", Value::String(error.clone())),
        };
        fields.insert(field.into(), value);
        Value::Object(fields).to_string()
    }

    /// Parses an answer from a line, with or without its line end.
    ///
    /// # Errors
    /// If the line is not an answer of this version.
    pub fn parse(line: &str) -> Result<Self, BadAnswer> {
        let value: Value = serde_json::from_str(line).map_err(|_| BadAnswer)?;
        let Value::Object(mut fields) = value else { return Err(BadAnswer) };
        let is_known = fields.get("version").and_then(Value::as_u64) == Some(VERSION);
        let Some(Value::String(request)) = fields.remove("request").filter(|_| is_known) else {
            return Err(BadAnswer);
        };
        let result = match (fields.remove("ok"), fields.remove("error")) {
            (Some(value), None) => Ok(value),
            (None, Some(Value::String(error))) => Err(error),
            _ => return Err(BadAnswer),
        };
        Ok(Self { request, result })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_comes_back() {
        let ok = Answer { request: "hold".into(), result: Ok(json!({ "hold": "auto" })) };
        assert_eq!(ok.line(), r#"{"ok":{"hold":"auto"},"request":"hold","version":1}"#);
        let no = Answer { request: "x".into(), result: Err("there is no x\n".into()) };
        assert!(!no.line().contains('\n'));
        for answer in [ok, no] {
            assert_eq!(Answer::parse(&answer.line()), Ok(answer));
        }
    }

    #[test]
    fn another_version_is_no_answer() {
        for line in ["", "{}", r#"{"version":2,"request":"x","ok":1}"#, r#"{"version":1,"ok":1}"#] {
            assert_eq!(Answer::parse(line), Err(BadAnswer), "{line}");
        }
    }
}
