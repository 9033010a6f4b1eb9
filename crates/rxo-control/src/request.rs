//! A request: its name, an optional new value, and named fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::VERSION;

/// A request to a running process. As a line of JSON, the request `{ name: "policy", value: "menon-2008", with:
/// { max_segments: 8 } }` is
/// `{"version":1,"request":"policy","value":"menon-2008","with":{"max_segments":"8"}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The name of the request.
    pub name: String,
    /// The new value of the setting that the request names; `None` to show the current value.
    pub value: Option<String>,
    /// Additional fields by name. Numbers and booleans in the line become strings.
    pub with: BTreeMap<String, String>,
}

/// The reason why a line is not a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadRequest {
    /// The line is not a JSON object.
    #[error("no JSON object on one line; write one such as {{\"request\":\"help\"}}")]
    NoObject,
    /// The line has an unknown version.
    #[error("version {0} is not known; write \"version\":{VERSION}, or leave it out")]
    Version(String),
    /// The line has no field `request`.
    #[error("\"request\" is missing; write one such as {{\"request\":\"help\"}}")]
    NoName,
    /// The line has a field that requests do not have.
    #[error("\"{0}\" is no field of a request; there are version, request, value and with")]
    Field(String),
    /// The value of a field has the wrong type.
    #[error("\"{0}\" must be text, a number, true or false")]
    Kind(String),
}

impl Request {
    /// Parses a control request from a line, with or without its line end. Allocates in proportion to its
    /// length.
    ///
    /// # Errors
    /// The first reason why the line is not a request.
    pub fn parse(line: &[u8]) -> Result<Self, BadRequest> {
        let value: Value = serde_json::from_slice(line).map_err(|_| BadRequest::NoObject)?;
        let Value::Object(mut fields) = value else { return Err(BadRequest::NoObject) };
        match fields.remove("version") {
            None => {}
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => return Err(BadRequest::Version(version.to_string())),
        }
        let name = fields.remove("request").ok_or(BadRequest::NoName)?;
        let name = text("request", name)?;
        let value = fields.remove("value").map(|value| text("value", value)).transpose()?;
        let with = with(fields.remove("with"))?;
        match fields.keys().next() {
            Some(field) => Err(BadRequest::Field(field.clone())),
            None => Ok(Self { name, value, with }),
        }
    }

    /// Formats the request as a line of JSON, without its line end.
    #[must_use]
    pub fn line(&self) -> String {
        let mut fields = Map::new();
        fields.insert("version".into(), VERSION.into());
        fields.insert("request".into(), self.name.clone().into());
        if let Some(value) = &self.value {
            fields.insert("value".into(), value.clone().into());
        }
        if !self.with.is_empty() {
            let with = self.with.iter().map(|(key, value)| (key.clone(), value.clone().into()));
            fields.insert("with".into(), Value::Object(with.collect()));
        }
        Value::Object(fields).to_string()
    }
}

fn with(value: Option<Value>) -> Result<BTreeMap<String, String>, BadRequest> {
    match value {
        None => Ok(BTreeMap::new()),
        Some(Value::Object(fields)) => {
            let fields = fields.into_iter();
            fields.map(|(key, value)| Ok((key.clone(), text(&key, value)?))).collect()
        }
        Some(_) => Err(BadRequest::Field("with, which is no object,".into())),
    }
}

fn text(field: &str, value: Value) -> Result<String, BadRequest> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(BadRequest::Kind(field.into())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_becomes_a_request() {
        let line =
            br#"{"request":"policy","value":"rsc2","with":{"flows":8,"psh":"keep","x":true}}"#;
        let request = Request::parse(line).unwrap();
        assert_eq!((&*request.name, request.value.as_deref()), ("policy", Some("rsc2")));
        let with: Vec<_> = request.with.iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(with, [("flows", "8"), ("psh", "keep"), ("x", "true")]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let rows = [
            ("", "no JSON object on one line; write one such as {\"request\":\"help\"}"),
            ("[1]", "no JSON object on one line"),
            ("{}", "\"request\" is missing"),
            (r#"{"request":"help","version":2}"#, "version 2 is not known; write \"version\":1"),
            (r#"{"request":null}"#, "\"request\" must be text"),
            (r#"{"request":"x","value":[]}"#, "\"value\" must be text"),
            (r#"{"request":"x","with":{"flows":{}}}"#, "\"flows\" must be text"),
            (r#"{"request":"x","with":7}"#, "\"with, which is no object,\" is no field"),
            (r#"{"request":"x","hold":"auto"}"#, "\"hold\" is no field of a request; there are"),
        ];
        for (line, message) in rows {
            let error = Request::parse(line.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(message), "{line}: {error}");
            assert!(!error.contains('\n'));
        }
    }

    proptest! {
        #[test]
        fn any_request_comes_back(
            name in ".{1,20}",
            value in proptest::option::of(".{0,20}"),
            with in proptest::collection::btree_map(".{0,9}", ".{0,9}", 0..4),
        ) {
            let request = Request { name, value, with };
            let line = request.line();
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(Request::parse(line.as_bytes()), Ok(request));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = Request::parse(&bytes);
        }
    }
}
