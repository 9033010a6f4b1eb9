//! Sums a callgrind profile by stage, to show the instructions of a segment in each.
//!
//! Separate because it depends on function names, which change with the code: the stages are a table of parts
//! of these names.

use std::collections::HashMap;
use std::fmt::Write;

use rxo_peers::profile::{self, Cost};

/// A stage, with parts of the names of its functions. A function belongs to the first stage with a matching
/// part.
type Stage = (&'static str, &'static [&'static str]);

const STAGES: [Stage; 9] = [
    ("the link's buffers", &["rxo_bench::tcp::link"]),
    ("engine", &["rxo_coalesce"]),
    ("ACK templates", &["rxo_ack"]),
    ("taking what arrived", &["rxo_tcp::arrives", "rxo_tcp::recovery", "rxo_tcp::congestion"]),
    (
        "the application's calls",
        &["rxo_frame::chain", "rxo_tcp::connection::calls", "rxo_host::socket"],
    ),
    ("planning and sending", &["rxo_tcp::"]),
    ("headers", &["rxo_wire"]),
    ("host", &["rxo_host"]),
    ("the benchmark's loop", &["rxo_bench"]),
];
/// Names of copying functions, which are classified by their caller.
const COPIES: [&str; 3] = ["memcpy", "memmove", "memset"];
const APPLICATION_COPY: &str = "the application's copy";
const OTHER_COPIES: &str = "other copies";
const OTHERS: &str = "others";

/// Returns a table of the instructions in `profile` by stage, per item.
pub(crate) fn table(profile: &str, items: f64) -> String {
    let costs = costs(profile);
    let names = STAGES.map(|(name, _)| name);
    let rows = [APPLICATION_COPY, OTHER_COPIES].into_iter().chain(names).chain([OTHERS]);
    let mut text = String::new();
    for row in rows {
        let cost = costs.get(row).copied().unwrap_or_default() / items;
        let _ = writeln!(text, "  {row:<25} {cost:>9.1}");
    }
    text
}

/// Returns the instructions of all calls of functions for which `is_it` is true, including their callees.
pub(crate) fn inclusive(profile: &str, is_it: impl Fn(&str) -> bool) -> f64 {
    let of_calls = profile::costs(profile, instructions).filter(|it| it.callee.is_some_and(&is_it));
    of_calls.map(|it| it.cost).sum()
}

/// Sums the instructions by stage.
fn costs(profile: &str) -> HashMap<&'static str, f64> {
    let mut costs = HashMap::new();
    for Cost { origin, callee, cost } in profile::costs(profile, instructions) {
        // The cost of a call is the callee's, which for a copy is its total.
        let stage = match callee {
            Some(callee) if is_copy(callee) => copied_by(origin.function),
            None if !is_copy(origin.function) => stage(origin.function),
            _ => continue,
        };
        *costs.entry(stage).or_default() += cost;
    }
    costs
}

fn instructions(event: &str) -> f64 {
    if event == "Ir" { 1.0 } else { 0.0 }
}

fn is_copy(function: &str) -> bool {
    COPIES.iter().any(|copy| function.contains(copy))
}

fn copied_by(function: &str) -> &'static str {
    if function.contains("rxo_frame::chain") { APPLICATION_COPY } else { OTHER_COPIES }
}

fn stage(function: &str) -> &'static str {
    let has = |parts: &[&str]| parts.iter().any(|part| function.contains(part));
    STAGES.iter().find(|(_, parts)| has(parts)).map_or(OTHERS, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_the_stage_and_copies_those_of_their_caller() {
        let profile = "fn=(1) rxo_frame::chain::Chain<B>::read\n10 7\ncfn=(2) memcpy\ncalls=1 20\n\
                       +1 170\n+1 3\nfn=(2)\n20 175\nfn=(3) rxo_wire::parse\n* 4\ncfn=(2)\n\
                       calls=1 20\n30 5\nfn=(1)\n10 1\n";
        let costs = costs(profile);
        assert_eq!((costs[APPLICATION_COPY], costs[OTHER_COPIES]), (170.0, 5.0));
        assert_eq!((costs["the application's calls"], costs["headers"]), (11.0, 4.0));
        assert_eq!(costs.values().sum::<f64>(), 190.0);
    }

    #[test]
    fn a_function_counts_with_what_it_calls() {
        let profile = "fn=(1) turn\n10 7\ncfn=(2) receive\ncalls=2 20\n+1 170\n+1 3\nfn=(2)\n20 60\n\
                       cfn=(3) parse\ncalls=1 20\n* 110\n";
        assert_eq!(inclusive(profile, |name| name == "receive"), 170.0);
    }

    #[test]
    fn a_row_is_the_cost_of_one_item() {
        let table = table("fn=(1) rxo_ack::expand\n10 30\n", 4.0);
        assert!(table.lines().any(|line| line.contains("ACK templates") && line.ends_with(" 7.5")));
    }
}
