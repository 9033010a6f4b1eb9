//! `rxo-lab menon`: measures the gain of Receive Aggregation and Acknowledgment Offload for a receiving host
//! (section 5), on rxo's own stack.
//!
//! [`measure`] runs a [`station`] (rxo's host and reading threads) with Linux senders. The stages of the host's worker
//! are mapped to the paper's categories ([`stages`]).

mod measure;
mod stages;
mod station;

use std::time::Duration;

use anyhow::Result;
use rxo_demo::machine::Cores;
use serde::Serialize;
use serde_json::json;

use super::stack::{PAPERS_LIMIT, Stack};
use super::{add_fit, once};
use crate::claim::Fact;
use crate::flags::{Chosen, Part, RunFlags};
use crate::limits::{Effort, Limits};
use crate::study::{Rows, Study, Table, by_fields};

/// One connection, five, and one of a guest (figures 3 and 7 to 10); the Aggregation Limit (figure 11); 1 to 400
/// connections (figure 12); requests (table 1).
pub(crate) const PARTS: &[Part] = &[
    Part::timed("profile"),
    Part::timed("limit"),
    Part::timed("connections"),
    Part::timed("exchange"),
];

/// A bulk measurement: a number of connections into one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Case {
    place: Place,
    connections: usize,
    stack: Stack,
}

/// The place of the host in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// On the wire, through a packet socket.
    Wire,
    /// Behind a bridge and a TAP, like a guest.
    Guest,
}

/// The conditions of a measurement.
#[derive(Clone, Copy, Debug)]
struct Setting {
    effort: Effort,
    /// Time that a transfer runs before it is measured.
    warm_up: Duration,
    cores: Cores,
}

impl Case {
    const fn wire(connections: usize, stack: Stack) -> Self {
        Self { place: Place::Wire, connections, stack }
    }
}

/// Makes the experiment from the flags.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    let (parts, effort) = (flags.chosen(PARTS)?, LIMITS.effort(flags)?);
    let warm_up = Duration::from_millis(if flags.is_quick() { 150 } else { 500 });
    let setting = Setting { effort, warm_up, cores: Cores::choose() };
    let bulk = Table::timed(
        ("bulk", cases(&parts, flags.is_quick())),
        effort.rounds,
        by_fields,
        move |case, _| measure::bulk(case, setting),
        ("scaled_gbit_per_s", "Gbit/CPU s"),
    );
    let stacks = [Stack::ORIGINAL, Stack::OPTIMIZED].into_iter().filter(|_| parts.has("exchange"));
    let exchange = Table::timed(
        ("exchange", stacks.collect()),
        effort.rounds,
        by_fields,
        move |stack, _| measure::request_response(stack, setting),
        ("per_s", "a second"),
    );
    let ghz = ghz(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default());
    Ok(Study {
        derive: Box::new(move |rows| derive(rows, ghz)),
        facts: Box::new(move |_| facts(effort, ghz)),
        ..Study::of("menon", vec![Box::new(bulk), Box::new(exchange.by("stack"))])
    })
}

/// Adds the clock, by which nanoseconds are cycles if it is known, and the curve over the Aggregation Limit.
fn derive(rows: &mut Rows, ghz: Option<f64>) -> Result<()> {
    let per_ns = ghz.unwrap_or(1.0);
    rows.insert("clock".to_owned(), json!({ "ghz": ghz, "per_ns": per_ns }));
    add_fit(rows, "bulk", ("ns_per_packet", per_ns), |row| {
        row["connections"] == 1 && row["place"] == "wire"
    });
    Ok(())
}

/// Returns the nominal clock rate of the first processor, in GHz; `None` if the kernel does not tell it. A
/// processor that runs faster than this at times executes more cycles.
fn ghz(cpuinfo: &str) -> Option<f64> {
    let line = cpuinfo.lines().find(|line| line.starts_with("cpu MHz"))?;
    let mhz: f64 = line.split_once(':')?.1.trim().parse().ok()?;
    (mhz > 0.0).then_some(mhz / 1_000.0)
}

fn facts(Effort { rounds, duration }: Effort, ghz: Option<f64>) -> Vec<Fact> {
    let clock = ghz.map_or(("has_no_clock", String::new()), |ghz| ("ghz", format!("{ghz:.2}")));
    let seconds = duration.as_secs_f64().to_string();
    vec![("rounds", rounds.to_string()), ("seconds", seconds), clock]
}

/// Returns every bulk transfer of the chosen parts.
fn cases(parts: &Chosen<'_>, quick: bool) -> Vec<Case> {
    let (connections, limits): (&[usize], &[u16]) = match quick {
        true => (&[1, 5, 25], &[1, 4, PAPERS_LIMIT, 35]),
        false => {
            (&[1, 5, 25, 50, 100, 200, 400], &[1, 2, 3, 4, 5, 7, 10, 15, PAPERS_LIMIT, 25, 30, 35])
        }
    };
    let is_in_profile = |count: usize| count <= PROFILE_CONNECTIONS && parts.has("profile");
    let wanted =
        connections.iter().filter(|count| parts.has("connections") || is_in_profile(**count));
    let by_connections = wanted.flat_map(|&count| Stack::ALL.map(|stack| Case::wire(count, stack)));
    let guest = |stack| Case { place: Place::Guest, ..Case::wire(1, stack) };
    let guests = Stack::ALL.map(guest).into_iter().filter(|_| parts.has("profile"));
    let limited = limits.iter().map(|&limit| Stack::limited(limit));
    let by_limit = [Stack::ORIGINAL].into_iter().chain(limited).map(|stack| Case::wire(1, stack));
    once(by_connections.chain(guests).chain(by_limit.filter(|_| parts.has("limit"))))
}

/// Most connections in figures 3, 8, 9 and 10.
const PROFILE_CONNECTIONS: usize = 5;
const LIMITS: Limits = Limits {
    rounds: [5, 1],
    most_rounds: 100,
    durations: [Duration::from_secs(2), Duration::from_millis(300)],
    shortest: Duration::from_millis(200),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    #[test]
    fn what_parts_share_is_measured_once() {
        let of = |line: &str| {
            let flags: RunFlags = typed(line).unwrap();
            (cases(&flags.chosen(PARTS).unwrap(), false).len(), study(&flags).unwrap().steps())
        };
        assert_eq!(of(""), (3 * 7 + 3 + 11, 5 * 37));
        for (part, count) in [("profile", 9), ("limit", 13), ("connections", 21)] {
            assert_eq!(of(&format!("--only {part}")), (count, 5 * count), "{part}");
        }
        assert_eq!(of("--only exchange"), (0, 5 * 2));
        let error = study(&typed("--seconds 0.1s").unwrap()).err().unwrap().to_string();
        assert_eq!(error, "--seconds 0.1s: choose 0.2s to 60s");
    }

    #[test]
    fn the_clock_is_what_the_kernel_tells() {
        assert_eq!(ghz("processor\t: 0\ncpu MHz\t\t: 2500.000\ncpu MHz\t\t: 1.0\n"), Some(2.5));
        assert_eq!((ghz("processor : 0\n"), ghz("cpu MHz : 0.0\n")), (None, None));
    }
}
