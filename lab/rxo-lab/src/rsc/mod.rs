//! `rxo-lab rsc`: Makineni et al., "Receive Side Coalescing for Accelerating TCP/IP Processing" (2006),
//! repeated with real Linux senders.
//!
//! [`senders`] make captures, or the user brings them; [`examine`] simulates the paper's card on each, and
//! [`amount`] draws figures 4 to 8. [`cost`] measures the processor time at each level for figures 10 and 12, and
//! [`faster`] projects it to other rates.

mod amount;
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
use crate::flags::{Part, RscFlags};
use crate::limits::Limits;
use crate::study::Study;

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
    let captures = captures::table(sources, parts.has("captures"));
    Ok(Study::of("rsc", vec![Box::new(captures), Box::new(cost::table(payloads, effort))]))
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
mod tests {
    use super::*;
    use crate::flags::typed;

    fn of(line: &str) -> Result<Study> {
        study(&typed::<RscFlags>(line)?)
    }

    #[test]
    fn without_flags_it_is_the_papers_experiments() {
        assert_eq!(of("").unwrap().each_step(), [36, 5 * 2 * 6 * 4]);
        assert_eq!(of("--quick").unwrap().each_step(), [6, 8]);
    }

    #[test]
    fn captures_that_were_brought_are_studied_and_nothing_else() {
        let folder = crate::folder::Folder::new("brought").unwrap();
        std::fs::write(folder.file("mine.pcap"), "").unwrap();
        let path = folder.file("");
        let brought = of(&format!("--captures {}", path.display())).unwrap();
        assert_eq!((brought.each_step(), brought.needs_networks), (vec![1, 0], false));
        let both = of(&format!("--captures {} --only captures,cpu", path.display())).unwrap();
        assert_eq!((both.each_step()[1] > 0, both.needs_networks), (true, true));
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("--packets 100", "--packets 100: choose 500 to 200000"),
            ("--rate 5000", "--rate 5000: choose 10 to 1000"),
            ("--burst 0", "--burst 0: choose 1 to 64"),
            ("--rounds 0", "--rounds 0: choose 1 to 1000"),
            ("--seconds 1h", "--seconds 1h: choose 0.1s to 60s"),
            ("--keep Cargo.toml", "--keep Cargo.toml: that is a file"),
            ("--captures src --only cpu", "--captures is for the part captures"),
            ("--captures src", "--captures src: there is no file named *.pcap"),
            ("--captures nowhere", "--captures nowhere: cannot be read"),
        ];
        for (flags, message) in rows {
            let error = of(flags).err().unwrap().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
