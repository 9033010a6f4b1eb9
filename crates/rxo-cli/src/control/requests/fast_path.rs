//! `fast-path`: switches the modules that look at frames before the engine.

use std::net::SocketAddr;

use rxo_control::{Entry, Refusal, Request};
use rxo_host::{
    Account, AccountName, FallbackReason, FastCounters, FastModule, FastModules, FastSwitches,
    HalfOpen,
};
use serde_json::{Map, Value, json};

use super::{Process, takes_only};

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "fast-path",
    usage: "fast-path[=on|off|MODULES] [MODULE=on|off...]",
    help: "shows which modules look at frames before the engine and what they did, or switches them",
    applies: |process| process.connections.is_some(),
    answer,
};

fn answer(process: &Process, request: &Request) -> Result<Value, Refusal> {
    let asker = process.connections.as_ref().ok_or("there is no host")?;
    let names: Vec<_> = FastModule::ALL.iter().map(|module| module.name()).collect();
    takes_only(request, true, &names)?;
    let switches = asker.fast_path();
    let wanted = wanted(switches.modules(), request)?;
    let is_change = request.value.is_some() || !request.with.is_empty();
    if is_change {
        switch(&switches, wanted);
    }
    let mut answer = json!({ "modules": shown(wanted) });
    if is_change {
        answer["takes_effect"] = "with the next batch".into();
    } else {
        let counters = asker.counters().ok_or("the host does not answer; it is ending")?;
        answer["counters"] = counted(&counters.fast);
    }
    Ok(answer)
}

/// The modules that are to be on. Refuses all of a request that has something wrong.
fn wanted(now: FastModules, request: &Request) -> Result<FastModules, Refusal> {
    let mut wanted = match &request.value {
        None => now,
        Some(text) => text.parse().map_err(|error| format!("fast-path={error}"))?,
    };
    for (name, value) in &request.with {
        let module: FastModule = name.parse()?;
        wanted = match &**value {
            "on" => wanted.with(module),
            "off" => wanted.without(module),
            _ => return Err(Refusal(format!("{name}={value}: write {name}=on or {name}=off"))),
        };
    }
    Ok(wanted)
}

/// Switches what differs.
fn switch(switches: &FastSwitches, wanted: FastModules) {
    for module in FastModule::ALL {
        if switches.is_on(module) != wanted.has(module) {
            switches.set(module, wanted.has(module));
        }
    }
}

fn shown(modules: FastModules) -> Value {
    let word = |module| if modules.has(module) { "on" } else { "off" };
    let row = |module: FastModule| (module.name().to_owned(), word(module).into());
    Value::Object(FastModule::ALL.into_iter().map(row).collect::<Map<_, _>>())
}

fn counted(of: &FastCounters) -> Value {
    let reasons = FallbackReason::ALL.iter().map(|&why| (why.name(), of.fallback(why)));
    let fallback: Map<_, _> = reasons
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    json!({
        "consumed": of.consumed,
        "duplicates": of.duplicates,
        "calls": of.calls,
        "unseen": of.unseen,
        "fallback": fallback,
        "ring": {
            "pushed": of.ring_pushed,
            "overwritten": of.ring_overwritten,
            "refused": of.ring_refused,
            "most": of.ring_most,
        },
        "filtered": of.filtered,
        "half_open": half_open(&of.half_open),
        "accounts": of.accounts.iter().map(account).collect::<Vec<_>>(),
        "unaccounted": account(&of.unaccounted),
    })
}

fn half_open(of: &HalfOpen) -> Value {
    let worst = of
        .worst
        .map(|(network, bits, now)| json!({ "network": format!("{network}/{bits}"), "now": now }));
    json!({ "syns": of.syns, "now": of.now, "alarms": of.alarms, "worst": worst })
}

fn account(of: &Account) -> Value {
    let name = of.name.map(|name| match name {
        AccountName::Network(network, bits) => format!("{network}/{bits}"),
        AccountName::Flow(key) => {
            let from = SocketAddr::new(key.source(), key.source_port());
            format!("{from} to {}", SocketAddr::new(key.destination(), key.destination_port()))
        }
    });
    json!({ "of": name, "frames": of.frames, "bytes": of.bytes, "acks": of.acks })
}
