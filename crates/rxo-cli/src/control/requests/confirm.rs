//! The request `confirm`: the user confirms that the machine is still reachable, so that the run continues.

use rxo_control::{Entry, Refusal, Request};
use serde_json::{Value, json};

use super::{Process, takes_only};

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "confirm",
    usage: "confirm",
    help: "lets the run go on beyond the time of --confirm",
    applies: |process| process.confirmer.is_some(),
    answer,
};

fn answer(process: &Process, request: &Request) -> Result<Value, Refusal> {
    takes_only(request, false, &[])?;
    let confirmer = process.confirmer.as_ref().ok_or("nothing waits for a confirmation")?;
    confirmer.confirm().map_err(|_| "the run is ending already")?;
    Ok(json!({ "confirmed": true }))
}
