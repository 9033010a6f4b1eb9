//! `rxo repro rsc`: Makineni et al., "Receive Side Coalescing for Accelerating TCP/IP Processing"
//! (2006), repeated with real Linux senders.
//!
//! The flags become a [`plan`]. Captures are made by [`senders`] (or brought), each is
//! [`examine`]d, and [`captures`] are what figures 4 to 8 are drawn from ([`amount`]). Processor
//! time for figures 10 to 12 is measured by [`cost`] at each [`level`] and drawn by [`saving`];
//! what a packet costs according to it is carried to other rates by [`faster`]. Everything ends in
//! a [`report`]: [`figure`](super::figure)s with [`statement`]s of the paper, each held against what was found.

mod amount;
mod captures;
mod ceiling;
mod condition;
mod cost;
mod examine;
mod faster;
mod level;
mod plan;
mod report;
mod saving;
mod senders;

use std::sync::atomic::AtomicBool;

use anyhow::Result;

use self::plan::Plan;
use self::report::Report;
use super::progress::Progress;
use super::{outcome, statement};
use crate::flags::RscFlags;
use crate::machine::Machine;

/// Repeats the experiments, writes the figures, and prints them beside the paper's values.
///
/// # Errors
/// When a flag cannot be, private networks cannot be made, a transfer breaks, a file cannot be
/// read or written; after Ctrl-C, when what was found until then has been printed.
pub(super) fn command(flags: &RscFlags, stop: &AtomicBool) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let privilege = if plan.needs_networks() { outcome::privilege()? } else { "not needed" };
    let mut report = measured(&plan, Machine::read(privilege), stop)?;
    report.files = outcome::draw(report.drawings(), &plan.out)?;
    outcome::print(&report, plan.json, || report.text())?;
    outcome::ended(report.partial)
}

fn measured(plan: &Plan, machine: Machine, stop: &AtomicBool) -> Result<Report> {
    let progress = Progress::new(plan.steps()?, plan.json);
    let examined = match &plan.captures {
        Some(captures) => captures::examined(captures, &progress, stop)?,
        None => Vec::new(),
    };
    let costs = match &plan.cpu {
        Some(cpu) => cost::measured(cpu, &progress, stop)?,
        None => Vec::new(),
    };
    progress.finish();
    let mut report = Report::new(plan, machine, examined, costs);
    report.partial = outcome::stopped(stop).or(report.partial);
    Ok(report)
}
