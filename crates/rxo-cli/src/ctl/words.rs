//! Parses the words after the socket on the command line into a request.

use anyhow::Result;
use rxo_control::Request;

use crate::exit::usage;

/// The name of the request that lists all requests.
pub(super) const HELP: &str = "help";

/// Parses `NAME` or `NAME=VALUE`, followed by any number of `KEY=VALUE`. Returns the request; without words,
/// the request `help`.
///
/// # Errors
/// If a word has neither form.
pub(super) fn request(words: &[String]) -> Result<Request> {
    let Some((first, fields)) = words.split_first() else {
        return Ok(Request { name: HELP.to_owned(), ..Request::default() });
    };
    let (name, value) = match first.split_once('=') {
        None => (first.clone(), None),
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
    };
    let mut request = Request { name, value, ..Request::default() };
    for field in fields {
        let (key, value) = field.split_once('=').ok_or_else(|| {
            usage(format!("{field}: after {first} write KEY=VALUE; one request at a time"))
        })?;
        if request.with.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(usage(format!("{field}: {key} is given twice; give it once")));
        }
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> Result<String> {
        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
        Ok(request(&words)?.line())
    }

    #[test]
    fn words_become_a_request() {
        let rows = [
            ("", r#"{"request":"help","version":1}"#),
            ("counters", r#"{"request":"counters","version":1}"#),
            ("hold=auto", r#"{"request":"hold","value":"auto","version":1}"#),
            (
                "policy=rsc2 hold=100us flows=8",
                r#"{"request":"policy","value":"rsc2","version":1,"with":{"flows":"8","hold":"100us"}}"#,
            ),
            (
                "fast-path pure-ack=off",
                r#"{"request":"fast-path","version":1,"with":{"pure-ack":"off"}}"#,
            ),
        ];
        for (words, expected) in rows {
            assert_eq!(line(words).unwrap(), expected);
        }
    }

    #[test]
    fn a_word_that_is_no_field_is_named() {
        let said = line("hold auto").unwrap_err().to_string();
        assert_eq!(said, "auto: after hold write KEY=VALUE; one request at a time");
        let said = line("policy flows=8 flows=9").unwrap_err().to_string();
        assert_eq!(said, "flows=9: flows is given twice; give it once");
    }
}
