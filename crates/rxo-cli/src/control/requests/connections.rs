//! The request `connections`: lists the connections of the host, a page at a time.

use rxo::figures::ConnectionFigures;
use rxo_control::{Entry, Refusal, Request};
use serde_json::{Value, json};

use super::{Process, takes_only};

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "connections",
    usage: "connections [from=N]",
    help: "shows every connection and its state, as `ss -ti` does those of the system",
    applies: |process| process.connections.is_some(),
    answer,
};

fn answer(process: &Process, request: &Request) -> Result<Value, Refusal> {
    takes_only(request, false, &["from"])?;
    let from = match request.with.get("from") {
        None => 0,
        Some(text) => {
            text.parse().map_err(|_| format!("from={text}: give a number, as in next"))?
        }
    };
    let gone = "the host does not answer; it is ending";
    let page = process.connections.as_ref().and_then(|asker| asker.connections(from, PAGE));
    let page = page.ok_or(gone)?;
    let next = page.next;
    let rows: Vec<_> = page.look().iter().map(ConnectionFigures::new).collect();
    let mut answer = json!({ "connections": rows });
    if let Some(next) = next {
        answer["next"] = next.into();
    }
    Ok(answer)
}

/// Maximum number of connections in one answer, so that the answer is smaller than 300 KB.
const PAGE: usize = 256;
