//! `rxo-lab policies`: the packets that each policy eliminates of each kind of traffic, counted by the engine.

use anyhow::{Result, anyhow};
use rxo_coalesce::{Config, Engine, Policy};
use rxo_frame::{Frame, Instant};
use rxo_testkit::{Traffic, Workload};
use serde::Serialize;

use crate::claim::Basis;
use crate::figure::Shape;
use crate::flags::{Part, RunFlags};
use crate::runner::Experiment;
use crate::scenario::{Chart, Scenario};

pub(crate) const PARTS: &[Part] = &[Part::counted("engine")];

/// A policy, by its name, and the name of the traffic.
#[derive(Clone, Copy, PartialEq, Serialize)]
struct Case(&'static str, &'static str);

/// Makes the experiment from the flags.
///
/// # Errors
/// If `--only` names no part.
pub(crate) fn scenario(flags: &RunFlags) -> Result<impl Experiment + use<>> {
    flags.chosen(PARTS)?;
    let policies = ["linux-gro", "menon-2008", "gallatin-2007", "rsc-2006", "xen-delayed"];
    let of = |policy| Workload::COMPARED.map(|traffic| Case(policy, traffic.name()));
    Ok(Scenario {
        basis: Basis::Count,
        cases: policies.into_iter().flat_map(of).collect(),
        rounds: 1,
        rotated: 1,
        name: |Case(policy, traffic)| format!("{policy}, {traffic}"),
        measure: Box::new(eliminated),
        line: |count| format!("{count:.0} of 10,000"),
        charts: &[Chart {
            number: "eliminated",
            x: |Case(_, traffic)| traffic.to_owned(),
            line: |Case(policy, _)| policy,
            value: |count| *count,
            paper: |_| None,
            shape: Shape::Bars,
        }],
        claims: |_, _| Vec::new(),
        is_intact: |_| true,
        facts: Vec::new(),
    })
}

fn eliminated(Case(policy, traffic): Case) -> Result<f64> {
    let kind = Workload::COMPARED.into_iter().find(|kind| kind.name() == traffic);
    let traffic = Traffic::new(kind.ok_or_else(|| anyhow!("no traffic {traffic}"))?, PACKETS, 1);
    let mut config = Config::new(Policy::by_name(policy)?, 1);
    (config.trust_checksums, config.batch_frames) = (true, POLL_FRAMES);
    let mut engine = Engine::new(config)?;
    let (packets, mut deliveries) = (traffic.iter().collect::<Vec<_>>(), 0);
    for (poll, packets) in packets.chunks(POLL_FRAMES).enumerate() {
        let now = Instant::from_micros(10 * poll as u64);
        let mut frames = packets.iter().map(|bytes| Frame::new(*bytes, now)).collect();
        engine.poll(&mut frames, now, |batch| deliveries += batch.len());
    }
    engine.flush(Instant::from_micros(1_000_000), |batch| deliveries += batch.len());
    Ok((10_000.0 * (1.0 - deliveries as f64 / PACKETS as f64)).round())
}

const PACKETS: usize = 10_000;
const POLL_FRAMES: usize = 64;
