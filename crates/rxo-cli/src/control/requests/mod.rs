//! The requests, one file each. A new request needs its file, its `mod` line and its entry in [`MENU`].

mod coalesce;
mod confirm;
mod connections;
mod counters;
mod fast_path;
mod hold;
mod policies;
mod policy;
mod reload;
mod stats;

use rxo_control::{Menu, Refusal, Request};

use super::{Engines, Process};

/// All requests, in the order of `rxo ctl SOCKET`.
pub(super) const MENU: Menu<Process> = Menu(&[
    counters::ENTRY,
    connections::ENTRY,
    policies::ENTRY,
    policy::ENTRY,
    hold::ENTRY,
    coalesce::ENTRY,
    fast_path::ENTRY,
    stats::ENTRY,
    reload::ENTRY,
    confirm::ENTRY,
]);

/// Returns the engines. The request is offered only if there are engines, so no error is expected.
fn engines(process: &Process) -> Result<&dyn Engines, Refusal> {
    let none = || Refusal(format!("{} coalesces nothing", process.command));
    process.engines.as_deref().ok_or_else(none)
}

/// Refuses a value for a request that takes none, and fields other than `known`.
fn takes_only(request: &Request, takes_value: bool, known: &[&str]) -> Result<(), Refusal> {
    let name = &request.name;
    if let Some(value) = request.value.as_ref().filter(|_| !takes_value) {
        return Err(Refusal(format!("{name}={value}: {name} only shows; leave the value out")));
    }
    match request.with.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) if known.is_empty() => {
            Err(Refusal(format!("{name} has no field {key}; leave it out")))
        }
        Some(key) => {
            Err(Refusal(format!("{name} has no field {key}; it has {}", known.join(", "))))
        }
    }
}
