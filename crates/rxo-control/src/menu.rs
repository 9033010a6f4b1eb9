//! The table of requests that a process answers.

use serde_json::{Value, json};

use crate::{Answer, Request};

/// The refusal of a request: the reason and the remedy in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl<T: std::fmt::Display> From<T> for Refusal {
    fn from(error: T) -> Self {
        Self(error.to_string())
    }
}

/// A request that a process answers. `P` is the type that gives access to the process.
pub struct Entry<P: ?Sized> {
    /// The name of the request, in lower case with hyphens.
    pub name: &'static str,
    /// The syntax of the request after `rxo ctl SOCKET`, such as `hold[=TIME]`.
    pub usage: &'static str,
    /// A description, in one line, of the value that the request shows or changes.
    pub help: &'static str,
    /// The function that returns `true` if the process supports the request.
    pub applies: fn(&P) -> bool,
    /// The function that answers the request. Its result is the answer's value, or the refusal.
    pub answer: fn(&P, &Request) -> Result<Value, Refusal>,
}

/// All requests that a process answers. `help` is always one of them.
#[derive(Debug)]
pub struct Menu<P: ?Sized + 'static>(pub &'static [Entry<P>]);

impl<P: ?Sized> std::fmt::Debug for Entry<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl<P: ?Sized> Menu<P> {
    /// Answers the request in `line` for `process`.
    pub fn answer(&self, process: &P, line: &[u8]) -> Answer {
        let request = match Request::parse(line) {
            Ok(request) => request,
            Err(bad) => return Answer { request: String::new(), result: Err(bad.to_string()) },
        };
        let result = self.result(process, &request).map_err(|Refusal(line)| line);
        Answer { request: request.name, result }
    }

    fn result(&self, process: &P, request: &Request) -> Result<Value, Refusal> {
        let known = || self.0.iter().filter(|entry| (entry.applies)(process));
        if request.name == HELP {
            let row = |entry: &Entry<P>| json!({ "request": entry.name, "usage": entry.usage, "help": entry.help });
            return Ok(json!({ "requests": known().map(row).collect::<Vec<_>>() }));
        }
        match known().find(|entry| entry.name == request.name) {
            Some(entry) => (entry.answer)(process, request),
            None => {
                let names: Vec<_> = known().map(|entry| entry.name).chain([HELP]).collect();
                let (name, names) = (&request.name, names.join(", "));
                Err(Refusal(format!("there is no request `{name}` here; there are {names}")))
            }
        }
    }
}

/// The name of the request that lists all requests.
const HELP: &str = "help";

#[cfg(test)]
mod tests {
    use super::*;

    const MENU: Menu<u32> = Menu(&[
        Entry {
            name: "count",
            usage: "count",
            help: "Shows the number.",
            applies: |_| true,
            answer: |number, _| Ok(json!(number)),
        },
        Entry {
            name: "large",
            usage: "large",
            help: "Only for large numbers.",
            applies: |number| *number > 100,
            answer: |_, request| {
                let value = request.value.as_deref().ok_or("give a value, such as large=7")?;
                Ok(json!(value.parse::<u32>()?))
            },
        },
    ]);

    fn said(process: u32, line: &str) -> String {
        MENU.answer(&process, line.as_bytes()).line()
    }

    #[test]
    fn what_a_process_knows_is_answered() {
        assert_eq!(said(7, r#"{"request":"count"}"#), r#"{"ok":7,"request":"count","version":1}"#);
        let line = said(7, r#"{"request":"help"}"#);
        assert!(line.contains("Shows the number.") && !line.contains("large"), "{line}");
    }

    #[test]
    fn what_it_does_not_know_is_named_with_what_there_is() {
        let line = said(7, r#"{"request":"large"}"#);
        assert!(line.contains("there is no request `large` here; there are count, help"), "{line}");
        assert!(said(7, "x").contains("no JSON object"));
        assert!(said(700, r#"{"request":"large"}"#).contains("give a value, such as large=7"));
        assert!(said(700, r#"{"request":"large","value":"x"}"#).contains("invalid digit"));
    }
}
