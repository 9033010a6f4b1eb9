//! The plan of `rxo-lab paro`, from its flags.

use anyhow::Result;
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;
use serde::{Deserialize, Serialize};

use super::case::{AckRate, Case, Way};
use super::paper::{PROFILED_BYTES, SIZES};
use crate::claim::{Fact, if_so};
use crate::flags::{Part, RunFlags};

/// Table 1, figures 1 and 4: instructions of requests; figure 3: cycles, as callgrind estimates them with
/// simulated caches; a live server with Linux clients.
pub(crate) const PARTS: &[Part] =
    &[Part::counted("requests"), Part::counted("cycles"), Part::timed("live")];

/// The measurements to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The cases to count.
    pub(super) counted: Vec<Case>,
    /// The cases to count again with simulated caches.
    pub(super) simulated: Vec<Case>,
    pub(super) scale: Scale,
    /// Number of rounds of the live server, each with a window for each way; 0 omits it.
    pub(super) rounds: usize,
    pub(super) live: LiveScale,
    pub(super) cores: Cores,
}

/// The extent of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Scale {
    pub(super) clients: u16,
    pub(super) files: u32,
    /// Bytes that clients download before counting begins; the next field is for the counted part.
    pub(super) warm_bytes: u64,
    pub(super) counted_bytes: u64,
}

/// The extent of the live measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LiveScale {
    pub(super) clients: usize,
    pub(super) files: u32,
    pub(super) window_ms: u64,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a number is invalid; the message describes valid values.
    pub(crate) fn from_flags(flags: &RunFlags) -> Result<Self> {
        let (parts, quick) = (flags.chosen(PARTS)?, flags.is_quick());
        let rounds = flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
        within("--rounds", rounds, 1..=MOST_ROUNDS)?;
        let sizes: &[u64] = if quick { &QUICK_SIZES } else { &SIZES.map(|(bytes, _)| bytes) };
        let rates: &[AckRate] = if quick { &[AckRate::Second] } else { &AckRate::ALL };
        let mut counted = Vec::new();
        if parts.has("requests") {
            for &acks in rates {
                let of = |file_bytes| Way::ALL.map(|way| Case { way, file_bytes, acks });
                counted.extend(sizes.iter().copied().flat_map(of));
            }
        }
        // Experiments that take minutes are left out of a quick run, unless they are named.
        let is_simulated = parts.has("cycles") && (parts.is_named("cycles") || !quick);
        let simulated = Way::ALL.into_iter().filter(|_| is_simulated).map(|way| Case {
            way,
            file_bytes: PROFILED_BYTES,
            acks: AckRate::Second,
        });
        Ok(Self {
            counted,
            simulated: simulated.collect(),
            scale: if quick { QUICK } else { FULL },
            rounds: if parts.has("live") { rounds } else { 0 },
            live: if quick { QUICK_LIVE } else { FULL_LIVE },
            cores: Cores::choose(),
        })
    }
}

impl Plan {
    /// Returns the facts in the notes on the method.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let Self { counted, simulated, scale, live, rounds, .. } = self;
        let is_counted = !counted.is_empty() || !simulated.is_empty();
        let of_counts = [
            ("files", scale.files.to_string()),
            ("clients", scale.clients.to_string()),
            ("counted_mb", (scale.counted_bytes >> 20).to_string()),
            ("warm_mb", (scale.warm_bytes >> 20).to_string()),
        ];
        let of_live = [
            ("live_clients", live.clients.to_string()),
            ("live_files", live.files.to_string()),
            ("window_ms", live.window_ms.to_string()),
            ("rounds", rounds.to_string()),
        ];
        let of_counts = of_counts.into_iter().filter(|_| is_counted);
        let of_live = of_live.into_iter().filter(|_| *rounds > 0);
        of_counts.chain(of_live).chain(if_so("is_simulated", !simulated.is_empty())).collect()
    }
}

/// Number and size of the paper's files. The paper has 400 clients, but 50 saturate the link too, and either
/// way a turn has the ACKs of one or two clients. A few hundred kilobytes open each client's window.
const FULL: Scale =
    Scale { clients: 50, files: 100, warm_bytes: 24 << 20, counted_bytes: 32 << 20 };
const QUICK: Scale = Scale { clients: 8, files: 4, warm_bytes: 3 << 20, counted_bytes: 4 << 20 };
const FULL_LIVE: LiveScale = LiveScale { clients: 400, files: 100, window_ms: 1_000 };
const QUICK_LIVE: LiveScale = LiveScale { clients: 16, files: 4, window_ms: 300 };
const QUICK_SIZES: [u64; 1] = [PROFILED_BYTES];
const ROUNDS: usize = 7;
const MOST_ROUNDS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    fn plan(line: &str) -> Result<Plan> {
        Plan::from_flags(&typed(line)?)
    }

    #[test]
    fn a_quick_run_leaves_cycles_out_unless_they_are_named() {
        let count = |line: &str| {
            let plan = plan(line).unwrap();
            (plan.counted.len(), plan.simulated.len(), plan.rounds)
        };
        assert_eq!(count(""), (2 * 5 * 4, 4, 7));
        assert_eq!(count("--quick"), (4, 0, 1));
        assert_eq!(count("--quick --only cycles"), (0, 4, 0));
        assert_eq!(count("--counted"), (4, 0, 0));
        assert_eq!(count("--only live --rounds 3"), (0, 0, 3));
        let error = plan("--rounds 101").unwrap_err().to_string();
        assert_eq!(error, "--rounds 101: choose 1 to 100");
    }
}
