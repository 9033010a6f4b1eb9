//! `rxo-lab gallatin`: Gallatin, "LRO ack aggregation" (netdev, 2007): what a bulk sender saves if its receive path
//! aggregates ACKs.
//!
//! The saving is measured twice. *Counted*: the sender is rxo's own host on a ring in shared memory, whose driver is
//! the receive path, as in the mail ([`paro::count`]). *Live*: a Linux sender behind rxo, to a receiver that
//! acknowledges rarely, every eight segments, or each segment, by each way of [`sending`]. The paper's values, the
//! figures and the claims stand in `claims/gallatin.json`.

use std::time::Duration;

use anyhow::Result;
use rxo_coalesce::Hold;
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;
use rxo_demo::sending::{self, Setup, Way};
use rxo_testbed::AckRate;
use serde::Serialize;

use crate::callgrind;
use crate::claim::Fact;
use crate::flags::{GallatinFlags, Part};
use crate::limits::{Effort, Limits};
use crate::paro::{self, Scale};
use crate::study::{Study, Table, by_fields};

pub(crate) const PARTS: &[Part] = &[Part::counted("counts"), Part::timed("transfers")];

/// A receiver, and the way of its ACKs to the sender.
#[derive(Clone, Copy, Serialize)]
struct Case {
    peer: &'static str,
    #[serde(skip)]
    acks: AckRate,
    way: Way,
}

/// The receivers, by their ACK rate: Linux's own (the paper's first receiver also coalesces); one ACK for eight
/// segments, like the paper's second; one for each segment, as without coalescing, which the paper did not measure.
const PEERS: [(&str, AckRate); 3] = [
    ("rarely", AckRate::Default),
    ("every-eight", AckRate::Groups(8)),
    ("each-segment", AckRate::EachSegment),
];

/// The figures of one transfer.
#[derive(Serialize)]
struct Sample {
    #[serde(flatten)]
    sample: sending::Sample,
    /// The sender's processor time in the paper's unit, microseconds for 1,024 bytes.
    us_per_kb: f64,
    acks_per_segment: f64,
    /// Deliveries of pure ACKs to the sender's stack, for 1,000 segments.
    deliveries_per_1000: f64,
    is_intact: bool,
}

/// Makes the experiment from the flags.
pub(crate) fn study(flags: &GallatinFlags) -> Result<Study> {
    let GallatinFlags { run, connections } = flags;
    let parts = run.chosen(PARTS)?;
    within("--connections", *connections, 1..=MOST_CONNECTIONS)?;
    let (connections, effort) = (*connections, LIMITS.effort(run)?);
    let (is_counted, scale) =
        (parts.has("counts"), if run.is_quick() { QUICK_SCALE } else { FULL_SCALE });
    let counts = paro::count(("counts", counted_cases(run.is_quick())), scale, false);
    let counts = counts.only_if(is_counted);
    let cases =
        PEERS.into_iter().flat_map(|(peer, acks)| Way::ALL.map(|way| Case { peer, acks, way }));
    let measure = move |Case { acks, way, .. }, _| {
        Ok(Sample::of(sending::measure(way, &setup(acks, connections, effort))?))
    };
    let cases = ("transfers", cases.collect());
    let table = Table::timed(cases, effort.rounds, by_fields, measure, ("us_per_kb", "us/KB"));
    let table = table.only_if(parts.has("transfers")).in_groups_of(Way::ALL.len());
    Ok(Study {
        prepare: Box::new(move || if is_counted { callgrind::check() } else { Ok(()) }),
        facts: Box::new(move |_| facts(connections, effort)),
        ..Study::of("gallatin", vec![Box::new(counts), Box::new(table)])
    })
}

/// Returns the cases to count: a receiver that acknowledges every eighth segment, with ACKs one by one and by the mail's
/// patch. Unless `is_quick`, also the mail's other receiver, whose few ACKs make little difference, one that acknowledges
/// each segment, and rxo's fast path.
fn counted_cases(is_quick: bool) -> Vec<paro::Case> {
    let receivers = [paro::AckRate::Merged, paro::AckRate::Eighth, paro::AckRate::Each];
    let ways = [paro::Way::Stack, paro::Way::Last, paro::Way::Batches];
    let (receivers, ways) =
        if is_quick { (&receivers[1..2], &ways[..2]) } else { (&receivers[..], &ways[..]) };
    let case = |acks: &paro::AckRate| {
        ways.iter()
            .map(|way| paro::Case { way: *way, file_bytes: FILE_BYTES, acks: *acks })
            .collect::<Vec<_>>()
    };
    receivers.iter().flat_map(case).collect()
}

impl Sample {
    fn of(sample: sending::Sample) -> Self {
        Self {
            us_per_kb: 1.024 * sample.cpu.total(),
            acks_per_segment: sample.acks_per_segment(),
            deliveries_per_1000: 1_000.0 * sample.ack_deliveries as f64
                / sample.segments.max(1) as f64,
            is_intact: sample.hash_ok,
            sample,
        }
    }
}

/// Returns the setup of one measurement with this receiver.
fn setup(acks: AckRate, connections: usize, Effort { duration: bulk, .. }: Effort) -> Setup {
    Setup {
        connections,
        bulk,
        warm_up: WARM_UP.min(bulk),
        cores: Cores::choose(),
        acks,
        hold: Hold::EndOfPoll,
        moderation: MODERATION,
    }
}

fn facts(connections: usize, Effort { rounds, duration }: Effort) -> Vec<Fact> {
    vec![
        ("rounds", rounds.to_string()),
        ("seconds", duration.as_secs_f64().to_string()),
        ("connections", connections.to_string()),
        ("moderation_us", MODERATION.as_micros().to_string()),
    ]
}

/// Limits of rounds and times. The paper used ten iterations.
const LIMITS: Limits = Limits {
    rounds: [10, 1],
    most_rounds: 1_000,
    durations: [Duration::from_secs(1), Duration::from_millis(200)],
    shortest: Duration::from_millis(100),
};
/// Interrupt delay of the paper's driver by default (`myri10ge_intr_coal_delay`), used for all its rows.
const MODERATION: Duration = Duration::from_micros(75);
const MOST_CONNECTIONS: usize = 400;
/// One connection, as in the mail, whose ACKs reach the sender as often as the card interrupts.
const FULL_SCALE: Scale = Scale {
    clients: 1,
    files: 4,
    warm_bytes: 8 << 20,
    counted_bytes: 32 << 20,
    turn_us: MODERATION.as_micros() as u64,
};
const QUICK_SCALE: Scale = Scale { warm_bytes: 3 << 20, counted_bytes: 4 << 20, ..FULL_SCALE };
const FILE_BYTES: u64 = 8 << 20;
const WARM_UP: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::claim::Claim;
    use crate::claim::Status::{self, *};
    use crate::conclude::tests::concluded;
    use crate::flags::typed;

    /// Returns the number of counts and of transfers.
    fn steps(line: &str) -> Result<[usize; 2]> {
        let steps = study(&typed(line)?)?.each_step();
        Ok([steps[0], steps[1]])
    }

    #[test]
    fn without_flags_it_is_the_papers_ten_iterations() {
        assert_eq!((steps("").unwrap(), steps("--quick").unwrap()), ([9, 90], [2, 9]));
        assert_eq!(steps("--counted").unwrap(), [2, 0]);
        assert_eq!(steps("--only transfers").unwrap(), [0, 90]);
        let effort = LIMITS.effort(&typed("").unwrap()).unwrap();
        let moderated = PEERS.map(|(_, acks)| setup(acks, 1, effort).moderation.as_micros());
        assert_eq!(moderated, [75; 3], "alike with every receiver");
    }

    /// Returns the verdicts for the rates and costs of each receiver, without aggregation and with it.
    fn verdicts(peers: [[(f64, f64); 2]; 3]) -> Vec<Status> {
        let row = |peer: &str, way, (gbit_per_s, us_per_kb): (f64, f64)| {
            let spread = |value| json!({ "median": value, "min": value, "max": value });
            json!({
                "peer": peer, "way": way, "gbit_per_s": spread(gbit_per_s), "us_per_kb": spread(us_per_kb),
                "acks_per_segment": 0.5,
            })
        };
        let of = |((peer, _), [without, with]): ((&str, AckRate), [(f64, f64); 2])| {
            [row(peer, "no-aggregation", without), row(peer, "ack-aggregate", with)]
        };
        statuses(json!({ "transfers": Vec::from_iter(PEERS.into_iter().zip(peers).flat_map(of)) }))
    }

    fn statuses(rows: Value) -> Vec<Status> {
        concluded("gallatin", rows).1.iter().map(Claim::status).collect()
    }

    #[test]
    fn what_the_paper_found_is_reproduced_when_it_is_so_here() {
        let found = verdicts([
            [(9.4, 0.349), (9.4, 0.290)],
            [(8.5, 0.404), (9.2, 0.250)],
            [(1.5, 5.0), (2.5, 2.5)],
        ]);
        assert_eq!(found, [Exceeds, Exceeds, Reproduced, Reproduced, Exceeds]);
    }

    #[test]
    fn what_is_not_so_here_is_weaker_or_contradicted() {
        let found = verdicts([
            [(9.4, 1.0), (9.4, 1.1)],
            [(9.0, 1.0), (4.0, 0.9)],
            [(1.5, 5.0), (1.5, 5.1)],
        ]);
        assert_eq!(found, [Contradicted, Weaker, Contradicted, Reproduced, Contradicted]);
        assert!(statuses(json!({ "transfers": [] })).is_empty());
    }

    /// If the ranges of the rounds overlap, the medians decide.
    #[test]
    fn overlapping_rates_are_compared_by_their_medians() {
        let row = |way, [min, median, max]: [f64; 3]| json!({ "peer": "rarely", "way": way, "gbit_per_s": { "median": median, "min": min, "max": max } });
        let of = |with| {
            let rows = [row("no-aggregation", [4.0, 5.0, 6.0]), row("ack-aggregate", with)];
            statuses(json!({ "transfers": rows }))
        };
        assert_eq!(of([5.9, 6.0, 7.0]), [Exceeds]);
        assert_eq!(of([3.0, 4.9, 6.0]), [Reproduced], "within the tolerance");
        assert_eq!(of([2.0, 3.0, 3.5]), [Contradicted]);
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("--connections 0", "--connections 0: choose 1 to 400"),
            ("--rounds 0", "--rounds 0: choose 1 to 1000"),
            ("--seconds 1h", "--seconds 1h: choose 0.1s to 60s"),
            ("--only tables", "--only tables: choose counts, transfers"),
        ];
        for (flags, message) in rows {
            let error = steps(flags).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
