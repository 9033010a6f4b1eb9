//! `rxo repro menon --part acks`: what coalescing does to those who count acknowledgements
//! (sections 3.4 and 4).
//!
//! Two experiments in private networks, with delay, loss and the link's rate from the project's own
//! middleware:
//!
//! * [`split`]: a sender (Linux Reno, CUBIC, BBR, or our own that counts ACKs) and a Linux receiver
//!   behind rxo that coalesces data: not at all, and with the ACKs that follow from it.
//! * [`keep`]: a Linux sender behind rxo that aggregates the pure ACKs on their way to it: how many
//!   it may swallow.
//!
//! The flags become a [`plan`]; [`transfer`] runs and watches one connection, [`growth`] says when it
//! was at full rate; samples become rows, and these a [`report`] with [`verdict`]s that depend on
//! nothing but the rows.

mod growth;
mod keep;
mod network;
mod plan;
mod report;
mod sample;
mod sender;
mod split;
mod transfer;
mod verdict;

use std::sync::atomic::AtomicBool;

use anyhow::Result;

use self::plan::Plan;
use self::report::Report;
use crate::flags::MenonFlags;
use crate::machine::Machine;
use crate::outcome;
use crate::progress::Progress;

/// Measures, writes the figures, and prints what was found.
///
/// # Errors
/// When a flag cannot be, private networks cannot be made, a transfer breaks, or a file cannot be
/// written; after Ctrl-C, when what was found until then has been printed.
pub(super) fn command(flags: &MenonFlags, stop: &AtomicBool) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let privilege = outcome::privilege()?;
    let mut report = measured(&plan, Machine::read(privilege), stop)?;
    report.files = outcome::draw(report.drawings(), &plan.out)?;
    outcome::print(&report, plan.json, || report.text())?;
    outcome::ended(report.partial)
}

fn measured(plan: &Plan, machine: Machine, stop: &AtomicBool) -> Result<Report> {
    let progress = Progress::new(split::steps(plan) + keep::steps(plan), plan.json);
    let split = split::measured(plan, &progress, stop)?;
    let keep = keep::measured(plan, &progress, stop)?;
    progress.finish();
    let mut report = Report::new(plan, machine, split, keep);
    report.partial = outcome::stopped(stop).or(report.partial);
    Ok(report)
}
