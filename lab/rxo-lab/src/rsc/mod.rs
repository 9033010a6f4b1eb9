//! `rxo-lab rsc`: Makineni et al., "Receive Side Coalescing for Accelerating TCP/IP Processing" (2006),
//! repeated with real Linux senders.
//!
//! [`senders`] make captures, or the user brings them; [`examine`] simulates the paper's card on each. [`cost`]
//! measures the processor time at each level, and [`faster`] projects it to other rates. The paper's values, the
//! figures and the claims stand in `claims/rsc.json`.

mod captures;
mod cost;
mod examine;
mod faster;
mod senders;

use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::Result;
use rxo_console::fault::usage;
use rxo_console::paths::for_folder;
use rxo_demo::limits::within;

use self::captures::Sources;
use self::examine::Condition;
use self::senders::Link;
use crate::claim::{Fact, if_so};
use crate::flags::{Part, RscFlags};
use crate::limits::Limits;
use crate::study::{Rows, Study, rows_of};

/// Figures 4 to 8: packets eliminated, from captures; figures 10 to 12: processor time, and the projection.
pub(crate) const PARTS: &[Part] = &[Part::timed("captures"), Part::timed("cpu")];

/// Makes the experiment from the flags.
///
/// # Errors
/// If a number or a time is invalid, flags contradict each other, or there are no captures; the message describes
/// valid values.
pub(crate) fn study(flags: &RscFlags) -> Result<Study> {
    let RscFlags { run, keep, captures, packets, rate, burst } = flags;
    let (parts, quick) = (run.chosen(PARTS)?, run.is_quick());
    let packets = packets.unwrap_or(if quick { 2_000 } else { 10_000 });
    within("--packets", packets, PACKETS)?;
    within("--rate", *rate, RATES_MBIT_PER_S)?;
    within("--burst", *burst, BURSTS)?;
    let effort = LIMITS.effort(run)?;
    let keep = keep.as_deref().map(|path| for_folder("--keep", path)).transpose()?;
    let sources = match captures {
        _ if !parts.has("captures") && captures.is_some() => {
            return Err(usage("--captures is for the part captures, which --only leaves out"));
        }
        Some(folder) => Sources::Brought(captures::found(folder)?),
        None => {
            let (counts, payloads): (&[_], &[_]) =
                if quick { (&[4, 16], &[2, 8, 64]) } else { (&CONNECTIONS, &PAYLOADS_KB) };
            let of = |&connections| {
                payloads.iter().map(move |&payload_kb| Condition { connections, payload_kb })
            };
            let link = Link { packets, bytes_per_s: rate * 125_000, burst_frames: *burst };
            Sources::Lab { conditions: counts.iter().flat_map(of).collect(), link, keep }
        }
    };
    // Brought captures are studied alone, unless --only says otherwise.
    let has_cpu = parts.has("cpu") && (captures.is_none() || !run.only.is_empty());
    let payloads: &[usize] = if quick { &[8] } else { &PAYLOADS_KB };
    let payloads = if has_cpu { payloads } else { &[] };
    let facts = if parts.has("captures") { sources.facts() } else { Vec::new() };
    let captures = captures::table(sources, parts.has("captures"));
    let costs = cost::table(payloads, effort);
    Ok(Study {
        derive: Box::new(|rows| {
            captures::add_variants(rows);
            cost::add_validity(rows);
            faster::add(rows);
            Ok(())
        }),
        facts: Box::new(move |rows| facts.iter().cloned().chain(facts_of(rows)).collect()),
        ..Study::of("rsc", vec![Box::new(captures), Box::new(costs)])
    })
}

/// Returns what the notes say of the rows.
fn facts_of(rows: &Rows) -> Vec<Fact> {
    let (captures, has_costs) = (rows_of(rows, "captures"), !rows_of(rows, "costs").is_empty());
    let lost: u64 = captures.iter().filter_map(|row| row["lost_frames"].as_u64()).sum();
    let damaged = captures.iter().filter(|row| !row["damage"].is_null());
    let damaged: Vec<&str> = damaged.filter_map(|row| row["name"].as_str()).collect();
    let all = [
        (lost > 0).then(|| ("lost", lost.to_string())),
        (!damaged.is_empty()).then(|| ("damaged", damaged.join(", "))),
        if_so("has_captures", !captures.is_empty()),
        if_so("has_costs", has_costs),
        if_so("has_one_gbit", has_costs),
        if_so("is_unprojected", has_costs && rows["fit"].is_null()),
    ];
    all.into_iter().flatten().collect()
}

/// Numbers of connections in figures 4 and 5.
const CONNECTIONS: [usize; 6] = [4, 8, 16, 30, 60, 90];
const PAYLOADS_KB: [usize; 6] = [2, 4, 8, 16, 32, 64];
const PACKETS: RangeInclusive<usize> = 500..=200_000;
const RATES_MBIT_PER_S: RangeInclusive<u64> = 10..=1_000;
const BURSTS: RangeInclusive<u32> = 1..=64;
const LIMITS: Limits = Limits {
    rounds: [5, 1],
    most_rounds: 1_000,
    durations: [Duration::from_millis(800), Duration::from_millis(200)],
    shortest: Duration::from_millis(100),
};
/// The time for which senders send before a measurement, so that their windows have opened.
const WARM_UP: Duration = Duration::from_millis(400);

#[cfg(test)]
mod tests;
