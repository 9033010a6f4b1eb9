//! The request `policy`: shows or changes the policy, which contains the rules of coalescing.

use rxo_coalesce::Policy;
use rxo_control::{Entry, Refusal, Request};
use serde_json::{Value, json};

use super::policies::in_force;
use super::{Engines, Process, engines};
use crate::policies::settings;

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "policy",
    usage: "policy[=NAME] [KEY=VALUE...]",
    help: "shows the policy, or changes it: to another, or only the fields that are given",
    applies: |process| process.engines.is_some(),
    answer,
};

fn answer(process: &Process, request: &Request) -> Result<Value, Refusal> {
    let engines = engines(process)?;
    if request.value.is_none() && request.with.is_empty() {
        return Ok(json!({ "engines": in_force(engines)? }));
    }
    let mut policy = match &request.value {
        None => present(engines)?,
        Some(name) => {
            let profile = Policy::by_name(name);
            let profile = profile.map_err(|error| format!("policy={name}: {error}"))?;
            engines.profile(profile, request.with.contains_key("hold"))
        }
    };
    for (key, value) in &request.with {
        policy.set(key, value)?;
    }
    change(engines, policy)
}

/// Returns the policy of the first engine. If a change is pending, returns the policy that the engine will
/// follow.
pub(super) fn present(engines: &dyn Engines) -> Result<Policy, Refusal> {
    let states = engines.states()?;
    let first = states.first().ok_or("there is no engine")?;
    Ok(first.next.unwrap_or(first.policy))
}

/// Makes all engines follow `policy`. Returns the answer to the client, which contains the time at which the
/// change takes effect.
pub(super) fn change(engines: &dyn Engines, policy: Policy) -> Result<Value, Refusal> {
    let moment = engines.change(policy)?;
    Ok(json!({
        "policy": policy.name, "settings": settings(&policy), "takes_effect": moment,
    }))
}
