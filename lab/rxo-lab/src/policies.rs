//! `rxo-lab policies`: the packets that each policy eliminates of each kind of traffic, counted by the engine.

use anyhow::{Result, anyhow};
use rxo_coalesce::{Config, Engine, Policy};
use rxo_frame::{Frame, Instant};
use rxo_testkit::{Traffic, Workload};
use serde::Serialize;

use crate::flags::{Part, RunFlags};
use crate::study::{Study, Table, by_fields};

pub(crate) const PARTS: &[Part] = &[Part::counted("engine")];

/// A policy and a kind of traffic, by their names.
#[derive(Clone, Copy, Serialize)]
struct Case {
    policy: &'static str,
    traffic: &'static str,
}

/// The result of one policy.
#[derive(Serialize)]
struct Eliminated {
    of_10_000: f64,
}

/// Makes the experiment from the flags.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    flags.chosen(PARTS)?;
    let policies = ["linux-gro", "menon-2008", "gallatin-2007", "rsc-2006", "xen-delayed"];
    let of = |policy| Workload::COMPARED.map(|traffic| Case { policy, traffic: traffic.name() });
    let cases = policies.into_iter().flat_map(of).collect();
    let table = Table::counted("counts", cases, by_fields, eliminated, ("of_10_000", "of 10,000"));
    Ok(Study::of("policies", vec![Box::new(table)]))
}

fn eliminated(Case { policy, traffic }: Case) -> Result<Eliminated> {
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
    Ok(Eliminated { of_10_000: (10_000.0 * (1.0 - deliveries as f64 / PACKETS as f64)).round() })
}

const PACKETS: usize = 10_000;
const POLL_FRAMES: usize = 64;
