//! `rxo ctl SOCKET`: sends a request to a running process, and shows the answer.
//!
//! The typed [`words`] become a request, and the answer becomes [`text`]; [`connections`] formats connections
//! like `ss -ti`. Apart from `help` and the list of connections, no request has code here: any request is
//! sent, and any answer is shown.

mod connections;
mod text;
mod words;

use anyhow::{Result, anyhow};
use rxo_control::{Answer, Request, Session};
use serde_json::Value;

use crate::flags::CtlFlags;
use crate::output;

/// Sends the request, and prints the answer.
///
/// # Errors
/// If the process does not answer, or refuses.
pub(crate) fn command(flags: &CtlFlags) -> Result<()> {
    let mut request = words::request(&flags.words)?;
    let mut session = Session::open(&flags.socket)?;
    let mut is_first = true;
    loop {
        let Answer { request: name, result } = session.ask(&request)?;
        let answer = result.map_err(|error| anyhow!("{error}"));
        if flags.json {
            let result = answer.as_ref().map(Value::clone).map_err(ToString::to_string);
            output::text(&Answer { request: name, result }.line())?;
        }
        let answer = answer?;
        if !flags.json {
            show(&request, &answer, is_first)?;
        }
        let Some(next) = answer.get("next").and_then(Value::as_u64) else { return Ok(()) };
        request.with.insert("from".to_owned(), next.to_string());
        is_first = false;
    }
}

fn show(request: &Request, answer: &Value, is_first: bool) -> Result<()> {
    let text = match &*request.name {
        words::HELP => text::help(answer),
        "connections" => connections::text(answer, is_first),
        _ => text::of(answer),
    };
    if text.is_empty() { Ok(()) } else { output::text(&text) }
}
