//! The request `hold`: shows or changes the time for which segments are held.

use rxo_control::{Entry, Refusal, Request};
use serde_json::{Value, json};

use super::policy::{change, present};
use super::{Process, engines, takes_only};

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "hold",
    usage: "hold[=end-of-poll|polls:N|packets:N|TIME|auto]",
    help: "shows how long segments are held, or changes it",
    applies: |process| process.engines.is_some(),
    answer,
};

fn answer(process: &Process, request: &Request) -> Result<Value, Refusal> {
    takes_only(request, true, &[])?;
    let engines = engines(process)?;
    let mut policy = present(engines)?;
    let Some(value) = &request.value else {
        return Ok(json!({ "hold": policy.hold.to_string() }));
    };
    policy.set("hold", value)?;
    let changed = change(engines, policy)?;
    Ok(json!({ "hold": policy.hold.to_string(), "takes_effect": changed["takes_effect"] }))
}
