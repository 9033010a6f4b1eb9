//! `rxo-lab gallatin`: Gallatin, "LRO ack aggregation" (netdev, 2007), repeated with a bulk Linux sender
//! behind rxo.
//!
//! The flags become a [`plan`]. For each [`peer`] (a receiver that acknowledges rarely, every eight segments,
//! or each segment) every way of [`sending`](rxo_demo::sending) is measured in turn. The result is a
//! [`table`] beside that of the [`paper`], verdicts on the paper's [`claims`], and [`drawing`]s, all in the
//! [`findings`].

mod claims;
mod drawing;
mod findings;
mod paper;
mod peer;
mod plan;
mod table;

use anyhow::Result;
use rxo_demo::experiment::{Experiment, Output};
#[cfg(test)]
use rxo_demo::losses::Losses;
#[cfg(test)]
use rxo_demo::sending::HostCpu;
use rxo_demo::sending::{Row, Sample, Way, measure};
use rxo_demo::turns::{Cases, Turns};

use self::findings::Found;
use self::peer::Peer;
pub(crate) use self::plan::Plan;
use self::table::Table;

impl Experiment for Plan {
    type Findings = Found;

    fn steps(&self) -> Result<usize> {
        Ok(self.effort.rounds * cases().len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Found> {
        let cases = cases();
        let samples = turns.measure(
            Cases { cases: &cases, rounds: self.effort.rounds, rotated: Way::ALL.len() },
            |(peer, way)| format!("{}, {}", peer.name(), way.name()),
            |(peer, way), _| measure(way, &self.setup(peer)),
            line,
        )?;
        Ok(Found::new(self.tables(&cases, &samples)))
    }

    fn notes(&self, _: &Found) -> Vec<String> {
        findings::notes(self)
    }

    fn output(&self) -> &Output {
        &self.output
    }
}

impl Plan {
    /// Returns a table for each peer, without ways that were never measured.
    fn tables(&self, cases: &[(Peer, Way)], samples: &[Vec<Sample>]) -> Vec<Table> {
        let of_peer = |peer| {
            let pairs = cases.iter().zip(samples).filter(move |((of, _), _)| *of == peer);
            let rows = pairs.filter_map(|(&(_, way), s)| Row::of(way, self.connections, s));
            Table { peer, rows: rows.collect() }
        };
        Peer::ALL.map(of_peer).to_vec()
    }
}

/// Returns every combination of peer and way.
fn cases() -> Vec<(Peer, Way)> {
    Peer::ALL.into_iter().flat_map(|peer| Way::ALL.map(|way| (peer, way))).collect()
}

fn line(sample: &Sample) -> String {
    format!(
        "{:.1} Gbit/s, {:.3} us/KB, {:.2} ACKs a segment",
        sample.gbit_per_s,
        table::us_per_kb(sample.cpu.total()),
        sample.acks_per_segment()
    )
}

/// Makes a sample for tests.
#[cfg(test)]
fn sample(gbit_per_s: f64, cpu_s_per_gb: f64, ack_deliveries: u64) -> Sample {
    let (sender, core_busy) = (cpu_s_per_gb, 2.0 * cpu_s_per_gb);
    Sample {
        gbit_per_s,
        cpu: HostCpu { sender, core_busy, ..HostCpu::default() },
        both_cpu_s_per_gb: 3.0 * cpu_s_per_gb,
        segments: 2_000,
        acks: 1_000,
        ack_deliveries,
        losses: Losses::default(),
        hash_ok: true,
    }
}
