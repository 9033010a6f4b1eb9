//! The requests to a running command, one file each. A new request needs its file, its `mod` line and its entry in
//! [`MENU`].

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

/// All requests, in the order in which `rxo ctl SOCKET` lists them.
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

/// Returns the engines of `process`. A process without engines does not offer the requests that call this
/// function.
///
/// # Errors
/// If the process has no engines.
fn engines(process: &Process) -> Result<&dyn Engines, Refusal> {
    let none = || Refusal(format!("{} coalesces nothing", process.command));
    process.engines.as_deref().ok_or_else(none)
}

/// Checks that a request has only permitted parts: a value only if `takes_value` is `true`, and no fields other
/// than `known`.
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
