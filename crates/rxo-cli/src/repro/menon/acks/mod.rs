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

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use rxo_lab::{Privilege, become_root_in_user_namespace};

use self::plan::Plan;
use self::report::Report;
use crate::exit::partial;
use crate::flags::MenonFlags;
use crate::machine::Machine;
use crate::repro::progress::Progress;
use crate::{output, stop};

/// Measures, writes the figures, and prints what was found.
///
/// # Errors
/// When a flag cannot be, private networks cannot be made, a transfer breaks, or a file cannot be
/// written; after Ctrl-C, when what was found until then has been printed.
pub(super) fn command(flags: &MenonFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    // Before anything starts a thread: only a process of one thread can get its own namespaces.
    let privilege = match become_root_in_user_namespace()? {
        Privilege::Given => "root",
        Privilege::UserNamespace => "user-namespace",
    };
    let stop = stop::on_request()?;
    let mut report = measured(&plan, Machine::read(privilege), &stop)?;
    report.files = draw(&report, &plan.out)?;
    if plan.json {
        output::json_document(&report)?;
    } else {
        output::text(&report.text())?;
    }
    report.partial.map_or(Ok(()), |why| Err(partial(why)))
}

fn measured(plan: &Plan, machine: Machine, stop: &AtomicBool) -> Result<Report> {
    let progress = Progress::new(split::steps(plan) + keep::steps(plan), plan.json);
    let split = split::measured(plan, &progress, stop)?;
    let keep = keep::measured(plan, &progress, stop)?;
    progress.finish();
    let mut report = Report::new(plan, machine, split, keep);
    if stop.load(Ordering::Relaxed) {
        report.partial = Some("stopped by a signal: this is what was measured until then".into());
    }
    Ok(report)
}

/// Writes every figure and says where.
fn draw(report: &Report, out: &Path) -> Result<Vec<String>> {
    fs::create_dir_all(out).with_context(|| {
        format!("cannot make the directory {}; choose another with --out", out.display())
    })?;
    let drawings = report.drawings().into_iter();
    drawings
        .map(|(name, svg)| {
            let path = out.join(name);
            fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path.display().to_string())
        })
        .collect()
}
