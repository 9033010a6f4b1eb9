//! `rxo policies`: lists the policies, their rules and their sources.

use anyhow::Result;
use rxo_coalesce::Policy;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::flags::PoliciesFlags;
use crate::numbers::grouped;
use crate::table::Table;
use crate::{defaults, output};

/// Prints every policy, as a table or as JSON.
///
/// # Errors
/// If the output cannot be written.
pub(crate) fn command(flags: &PoliciesFlags) -> Result<()> {
    if flags.json {
        let policies: Vec<_> = Policy::all().iter().map(Listed::new).collect();
        return output::json_document(&serde_json::json!({ "policies": policies }));
    }
    output::text(&text())
}

/// A policy as it is printed in JSON.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    paper: &'static str,
    default: bool,
    /// `true` if the receiver must be able to read each segment's record.
    needs_records: bool,
    /// `true` if a kernel can segment the policy's aggregates into the original packets.
    resegmentable: bool,
    settings: Map<String, Value>,
}

impl Listed {
    fn new(policy: &Policy) -> Self {
        Self {
            name: policy.name,
            paper: policy.paper,
            default: policy.name == defaults::POLICY,
            needs_records: policy.needs_records,
            resegmentable: policy.is_resegmentable(),
            settings: settings(policy),
        }
    }
}

/// Returns every field of `policy` by name. Values that can be parsed as numbers become numbers.
pub(crate) fn settings(policy: &Policy) -> Map<String, Value> {
    output::fields(policy.settings())
}

fn text() -> String {
    let mut limits = Table::new(&LIMITS);
    let mut rules = Table::new(&RULES);
    let mut own = Table::new(&OWN);
    let mut acks = Table::new(&ACKS);
    for policy in Policy::all() {
        limits.row(limits_of(&policy));
        if policy.coalesce {
            rules.row(named(&policy, RULES_OF));
            own.row(named(&policy, OWN_OF));
            acks.row(named(&policy, ACKS_OF));
        }
    }
    format!(
        "Limits\n\n{}\n\nWhat may differ between the segments of an aggregate\n\n{}\n\n\
         What a segment is by itself\n\n{}\n\nPure ACKs\n\n{}\n\n{}",
        limits.render(),
        rules.render(),
        own.render(),
        acks.render(),
        notes()
    )
}

const LIMITS: [&str; 7] = ["policy", "segments", "bytes", "payload", "flows", "held until", "from"];
const RULES: [&str; 8] =
    ["policy", "ack", "window", "options", "psh", "fin", "payload sizes", "extensions"];
const RULES_OF: &[&str] =
    &["ack", "window", "options", "psh", "fin", "payload", "extension_headers"];
const OWN: [&str; 8] = [
    "policy",
    "with ECE",
    "marked CE",
    "IPv4 ID",
    "needs DF",
    "may echo zero",
    "UDP",
    "in tunnels",
];
const OWN_OF: &[&str] = &["ece", "ce", "ip_id", "needs_df", "zero_echo", "udp", "tunnels"];
const ACKS: [&str; 5] = ["policy", "pure acks", "at most", "keep every", "newer SACK covers"];
const ACKS_OF: &[&str] = &["pure_acks", "max_acks", "keep_every", "sack_superset"];

fn limits_of(policy: &Policy) -> Vec<String> {
    let or_dash = |limit: u32, none: u32| {
        if limit == none || !policy.coalesce { "-".to_owned() } else { grouped(limit.into()) }
    };
    vec![
        policy.name.to_owned(),
        or_dash(policy.max_segments.into(), u16::MAX.into()),
        or_dash(policy.max_bytes, u32::MAX),
        or_dash(policy.buffer_bytes, u32::MAX),
        or_dash(policy.flows.into(), 0),
        if policy.coalesce { policy.hold.to_string() } else { "-".to_owned() },
        policy.paper.to_owned(),
    ]
}

/// Returns the policy's name, followed by the values of its fields `keys`, as the cells of a table row.
fn named(policy: &Policy, keys: &[&str]) -> Vec<String> {
    let settings: Vec<_> = policy.settings().collect();
    let of = |name| settings.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
    let values = keys.iter().map(|&key| of(key).unwrap_or_default());
    std::iter::once(policy.name.to_owned()).chain(values).collect()
}

fn notes() -> String {
    let default = defaults::POLICY;
    let limit = defaults::LIVE_MAX_SEGMENTS;
    let records: Vec<_> =
        Policy::all().iter().filter(|policy| policy.needs_records).map(|p| p.name).collect();
    format!(
        "segments -  as many as the bytes allow. bytes: the whole IP packet. payload: of one\n\
         aggregate. {default} is the default; `rxo run` and `rxo demo` limit it to {limit} segments.\n\
         {} needs a receiver that reads each segment's record, which a kernel does not.\n\
         marked CE: bypass shows a host that counts marks each one (RFC 9768); equal merges them.\n\
         pure acks: single shows the host the last of several, record gives all to who reads records;\n\
         keep every: of single ones at least every Nth is delivered. `rxo run --ack-aggregate` is\n\
         pure_acks=single with any policy.\n\
         Change a field with `rxo run --set`: coalesce, max_segments, max_bytes, buffer_bytes\n\
         (payload), flows, ack, window, options, psh, fin, payload (sizes), ece, ce, ip_id,\n\
         needs_df, zero_echo, pure_acks, max_acks, keep_every, sack_superset, extension_headers, udp, tunnels\n\
         (TCP in VXLAN and Geneve), hold (held until), max_hold. hold=auto:50us holds while the receiver is\n\
         busy (device permitting).",
        records.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_listed_with_its_source() {
        let text = text();
        for policy in Policy::all() {
            assert!(text.contains(policy.name) && text.contains(policy.paper), "{}", policy.name);
        }
        assert!(text.lines().all(|line| line.chars().count() <= 132), "{text}");
    }

    #[test]
    fn every_field_that_can_be_set_is_named() {
        for (name, _) in Policy::linux_gro().settings() {
            assert!(notes().contains(name), "{name}");
        }
    }

    #[test]
    fn numbers_are_numbers_for_machines() {
        let settings = settings(&Policy::menon_2008());
        assert_eq!(settings["max_segments"], 20);
        assert_eq!(settings["ack"], "not-decreasing");
    }
}
