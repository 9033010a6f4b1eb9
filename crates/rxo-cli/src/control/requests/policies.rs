//! The request `policies`: lists all policies, and the policy that each engine follows.

use rxo::worker::Coalescing;
use rxo_coalesce::Policy;
use rxo_control::{Entry, Refusal};
use serde_json::{Value, json};

use super::super::EngineState;
use super::{Engines, Process, engines, takes_only};
use crate::policies::settings;

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "policies",
    usage: "policies",
    help: "shows the policy of each engine with its settings, and the names of all",
    applies: |process| process.engines.is_some(),
    answer: |process, request| {
        takes_only(request, false, &[])?;
        let names: Vec<_> = Policy::all().iter().map(|policy| policy.name).collect();
        Ok(json!({ "engines": in_force(engines(process)?)?, "profiles": names }))
    },
};

/// Returns the policy of each engine, as a JSON array.
pub(super) fn in_force(engines: &dyn Engines) -> Result<Value, Refusal> {
    Ok(engines.states()?.iter().map(row).collect())
}

fn row(EngineState { of, policy, next, coalescing }: &EngineState) -> Value {
    let mut row = json!({ "engine": of, "policy": policy.name, "settings": settings(policy) });
    if let Some(coalescing) = coalescing {
        row["coalescing"] = state(coalescing);
    }
    if let Some(next) = next {
        row["next"] = json!({ "policy": next.name, "settings": settings(next) });
    }
    row
}

/// Returns the state of `--coalesce` as JSON: the requested mode, whether frames are coalesced now, and whether
/// coalescing is on only as a probe.
pub(super) fn state(of: &Coalescing) -> Value {
    json!({ "asked": of.asked.name(), "on": of.is_on, "probe": of.is_probe })
}
