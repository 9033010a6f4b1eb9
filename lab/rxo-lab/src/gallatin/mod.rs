//! `rxo-lab gallatin`: Gallatin, "LRO ack aggregation" (netdev, 2007), repeated with a bulk Linux sender
//! behind rxo.
//!
//! A case is a [`peer`] (a receiver that acknowledges rarely, every eight segments, or each segment) and a way
//! of [`sending`](rxo_demo::sending). The charts show ours beside the tables of the [`paper`]; the [`claims`]
//! compare aggregation with none.

mod claims;
mod paper;
mod peer;

use std::time::Duration;

use anyhow::Result;
use rxo_coalesce::Hold;
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;
use rxo_demo::sending::{Sample, Setup, Way, measure};

use self::peer::Peer;
use crate::claim::{Basis, Fact};
use crate::figure::Shape;
use crate::flags::{GallatinFlags, Part};
use crate::limits::{Effort, Limits};
use crate::runner::Experiment;
use crate::scenario::{Cells, Chart, Scenario};

pub(crate) const PARTS: &[Part] = &[];

/// A receiver, and the way of its ACKs to the sender.
type Case = (Peer, Way);

/// Makes the experiment from the flags.
///
/// # Errors
/// If a number or a time is invalid; the message describes valid values.
pub(crate) fn scenario(flags: &GallatinFlags) -> Result<impl Experiment + use<>> {
    let GallatinFlags { run, connections } = flags;
    run.chosen(PARTS)?;
    within("--connections", *connections, 1..=MOST_CONNECTIONS)?;
    let (connections, effort) = (*connections, LIMITS.effort(run)?);
    let each = |peer| Way::ALL.map(|way| (peer, way));
    Ok(Scenario {
        basis: Basis::ProcessorTime,
        cases: Peer::ALL.into_iter().flat_map(each).collect(),
        rounds: effort.rounds,
        rotated: Way::ALL.len(),
        name: |(peer, way)| format!("{}, {}", peer.label(), way.name()),
        measure: Box::new(move |(peer, way)| measure(way, &setup(peer, connections, effort))),
        line: |sample| {
            format!(
                "{:.1} Gbit/s, {:.3} us/KB, {:.2} ACKs a segment",
                sample.gbit_per_s,
                us_per_kb(sample),
                sample.acks_per_segment()
            )
        },
        charts: &CHARTS,
        claims: claims::of,
        is_intact: |sample| sample.hash_ok,
        facts: facts(connections, effort),
    })
}

/// Returns the setup of one measurement with this receiver.
fn setup(peer: Peer, connections: usize, Effort { duration: bulk, .. }: Effort) -> Setup {
    Setup {
        connections,
        bulk,
        warm_up: WARM_UP.min(bulk),
        cores: Cores::choose(),
        acks: peer.acks(),
        hold: Hold::EndOfPoll,
        moderation: MODERATION,
    }
}

const CHARTS: [Chart<Case, Sample>; 3] = [
    Chart {
        number: "cost",
        value: us_per_kb,
        paper: |(peer, way)| Some(paper::row(peer, way)?.us_per_kb),
        ..BY_PEER
    },
    Chart {
        number: "rate",
        value: |sample| sample.gbit_per_s,
        paper: |(peer, way)| Some(paper::row(peer, way)?.gbit_per_s),
        ..BY_PEER
    },
    Chart {
        number: "deliveries",
        value: |sample| 1_000.0 * sample.ack_deliveries as f64 / sample.segments.max(1) as f64,
        ..BY_PEER
    },
];

const BY_PEER: Chart<Case, Sample> = Chart {
    number: "",
    x: |(peer, _)| peer.label().to_owned(),
    line: |(_, way)| way.label(),
    value: |_| 0.0,
    paper: |_| None,
    shape: Shape::Bars,
};

/// Returns the sender's processor time in the paper's unit, microseconds per 1,024 bytes.
fn us_per_kb(sample: &Sample) -> f64 {
    1.024 * sample.cpu.total()
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
const WARM_UP: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    fn steps(line: &str) -> Result<usize> {
        scenario(&typed(line)?)?.steps()
    }

    #[test]
    fn without_flags_it_is_the_papers_ten_iterations() {
        assert_eq!((steps("").unwrap(), steps("--quick").unwrap()), (90, 9));
        let effort = LIMITS.effort(&typed("").unwrap()).unwrap();
        let moderated = Peer::ALL.map(|peer| setup(peer, 1, effort).moderation.as_micros());
        assert_eq!(moderated, [75; 3], "alike with every receiver");
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("--connections 0", "--connections 0: choose 1 to 400"),
            ("--rounds 0", "--rounds 0: choose 1 to 1000"),
            ("--seconds 1h", "--seconds 1h: choose 0.1s to 60s"),
            ("--only tables", "--only tables: this experiment has no parts"),
        ];
        for (flags, message) in rows {
            let error = steps(flags).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
