//! The request `fast-path`: switches the modules that process frames before the engine.

use rxo_control::{Entry, Refusal, Request};
use rxo_host::FastModules;
use serde_json::{Map, Value, json};

use super::{Process, takes_only};
use crate::hosting::FastTotals;

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "fast-path",
    usage: "fast-path[=on|off|MODULES] [MODULE=on|off...]",
    help: "shows which modules look at frames before the engine and what they did, or switches them",
    applies: |process| process.connections.is_some(),
    answer,
};

fn answer(process: &Process, request: &Request) -> Result<Value, Refusal> {
    let asker = process.connections.as_ref().ok_or("there is no host")?;
    takes_only(request, true, &FastModules::NAMES)?;
    let wanted = wanted(asker.fast_path(), request)?;
    if wanted.has(FastModules::FILTER) && !process.has_rules {
        return Err(without_rule(process.command));
    }
    let is_change = request.value.is_some() || !request.with.is_empty();
    if is_change {
        asker.set_fast_path(wanted);
    }
    let mut answer = json!({ "modules": shown(wanted) });
    if is_change {
        answer["takes_effect"] = "with the next batch".into();
    } else {
        let counters = asker.counters().ok_or("the host does not answer; it is ending")?;
        answer["counters"] = json!(FastTotals::shown(&counters.fast));
    }
    Ok(answer)
}

/// Computes the modules to turn on. If any part of the request is invalid, refuses the whole request.
fn wanted(now: FastModules, request: &Request) -> Result<FastModules, Refusal> {
    let mut wanted = match &request.value {
        None => now,
        Some(text) => text.parse().map_err(|error| format!("fast-path={error}"))?,
    };
    for (name, value) in &request.with {
        let module: FastModules = name.parse()?;
        wanted = match &**value {
            "on" => wanted.with(module),
            "off" => wanted.without(module),
            _ => return Err(Refusal(format!("{name}={value}: write {name}=on or {name}=off"))),
        };
    }
    Ok(wanted)
}

/// Returns the refusal to turn on a filter that has no rules; rules can only be given at the start.
fn without_rule(command: &str) -> Refusal {
    Refusal(format!(
        "the filter has no rule; start {command} with one, such as --filter \"drop from 10.0.0.0/8\""
    ))
}

fn shown(modules: FastModules) -> Value {
    let word = |name: &str| if name.parse().is_ok_and(|of| modules.has(of)) { "on" } else { "off" };
    let row = |name: &str| (name.to_owned(), word(name).into());
    Value::Object(FastModules::NAMES.into_iter().map(row).collect::<Map<_, _>>())
}
