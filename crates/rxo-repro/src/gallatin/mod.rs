//! `rxo repro gallatin`: Gallatin, "LRO ack aggregation" (netdev, 2007), repeated with a bulk Linux
//! sender behind rxo.
//!
//! The flags become a [`plan`]. For each [`peer`] (a receiver that acknowledges rarely, every eight
//! segments, or each) every way of [`sending`](crate::sending) is measured in turn; that gives a
//! [`table`] beside the paper's ([`paper`]), [`claims`] of the paper held against it, and [`drawing`]s,
//! all in a [`report`].

mod claims;
mod drawing;
mod paper;
mod peer;
mod plan;
mod report;
mod table;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use self::peer::Peer;
use self::plan::Plan;
use self::report::Report;
use self::table::Table;
use super::progress::Progress;
use super::{outcome, statement};
use crate::flags::GallatinFlags;
use crate::machine::Machine;
use crate::sending::{Row, Sample, Way, measure};

/// Repeats the experiments, writes the figures, and prints them beside the paper's values.
///
/// # Errors
/// When a flag cannot be, private networks cannot be made, a transfer breaks or arrives wrong, a
/// file cannot be written; after Ctrl-C, when what was found until then has been printed.
pub(super) fn command(flags: &GallatinFlags, stop: &AtomicBool) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let privilege = outcome::privilege()?;
    let tables = measured(&plan, stop)?;
    let mut report = Report::new(&plan, tables, Machine::read(privilege));
    report.partial = outcome::stopped(stop).or(report.partial);
    report.files = outcome::draw(drawing::all(&report.tables), &plan.out)?;
    outcome::print(&report, plan.json, || report.text())?;
    if !report.is_intact() {
        bail!("bytes arrived that were not sent; please report this with the tables above");
    }
    outcome::ended(report.partial)
}

/// All rounds of all peers, the ways in turn; what a signal left out is missing.
fn measured(plan: &Plan, stop: &AtomicBool) -> Result<Vec<Table>> {
    let progress = Progress::new(plan.steps(), plan.json);
    let mut samples: [[Vec<Sample>; Way::ALL.len()]; Peer::ALL.len()] = Default::default();
    for (round, peer, way) in plan.order() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let step = format!("round {}: {}, {}", round + 1, peer.name(), way.name());
        progress.begin(&step);
        let sample = measure(way, &plan.setup(peer))
            .with_context(|| format!("{step}: could not be measured"))?;
        progress.end(&format!(
            "{step}: {:.1} Gbit/s, {:.3} us/KB, {:.2} ACKs a segment",
            sample.gbit_per_s,
            table::us_per_kb(sample.cpu.total()),
            sample.acks_per_segment()
        ));
        samples[peer as usize][way as usize].push(sample);
    }
    progress.finish();
    let rows = |ways: &[Vec<Sample>]| -> Vec<Row> {
        let ways = Way::ALL.iter().zip(ways);
        ways.filter_map(|(&way, samples)| Row::of(way, plan.connections, samples)).collect()
    };
    let tables = Peer::ALL.iter().zip(&samples);
    Ok(tables.map(|(&peer, ways)| Table { peer, rows: rows(ways) }).collect())
}
