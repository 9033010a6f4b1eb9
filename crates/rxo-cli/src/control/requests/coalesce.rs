//! The request `coalesce`: shows or sets whether frames go through the engines.

use rxo::worker::Coalesce;
use rxo_control::{Entry, Refusal, Request};
use serde_json::{Map, Value, json};

use super::policies::state;
use super::{Process, engines, takes_only};

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "coalesce",
    usage: "coalesce[=auto|on|off]",
    help: "shows whether frames are coalesced, or changes it; auto does so while it pays",
    applies: |process| process.can_pass,
    answer,
};

fn answer(process: &Process, request: &Request) -> Result<Value, Refusal> {
    takes_only(request, true, &[])?;
    let engines = engines(process)?;
    let Some(value) = &request.value else {
        let states = engines.states()?.into_iter();
        let states = states.filter_map(|it| Some((it.of, state(&it.coalescing?))));
        return Ok(Value::Object(states.collect::<Map<_, _>>()));
    };
    let when: Coalesce = value.parse().map_err(|error| format!("coalesce={value}: {error}"))?;
    let moment = engines.coalesce(when)?;
    Ok(json!({ "coalesce": when.name(), "takes_effect": moment }))
}
