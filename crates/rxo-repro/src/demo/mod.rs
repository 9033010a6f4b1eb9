//! `rxo demo`: the same transfer over five paths in a private network, side by side.
//!
//! The flags become a [`plan`]; the plan's rounds are measured one path after the other
//! ([`measure`]: [`transfer`]s, through rxo in a [`manner`] where it is one of its paths); the samples
//! become rows ([`row`]); the rows a [`report`].
//! Nothing outside the process's own namespaces is touched, and they go with the process.

mod manner;
mod measure;
mod path;
mod plan;
mod progress;
mod report;
mod reverse;
mod row;
mod sample;
mod sentence;
mod transfer;

use anyhow::{Context, Result, bail};
use rxo_console::output;
use rxo_lab::{Privilege, become_root_in_user_namespace};

use self::path::Path;
use self::plan::Plan;
use self::progress::Progress;
use self::report::Report;
use self::row::Row;
use self::sample::Sample;
use crate::flags::DemoFlags;
use crate::machine::Machine;

/// Measures, and prints the result.
///
/// # Errors
/// When a flag cannot be, private networks cannot be made, a transfer breaks, or bytes arrived
/// that were not sent.
pub fn command(flags: &DemoFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let peer = reverse::Peer::from_flags(flags)?;
    // Before anything starts a thread: only a process of one thread can get its own namespaces.
    let privilege = match become_root_in_user_namespace()? {
        Privilege::Given => "root",
        Privilege::UserNamespace => "user-namespace",
    };
    if flags.reverse {
        return reverse::command(&plan, peer, privilege, flags.json);
    }
    let rows = measured(&plan, &Progress::new(plan.measurements(), flags.json))?;
    let report = Report::new(rows, Machine::read(privilege), &plan);
    if flags.json {
        output::json_document(&report)?;
    } else {
        output::text(&report.text())?;
    }
    if !report.is_intact() {
        bail!("bytes arrived that were not sent; please report this with the table above");
    }
    Ok(())
}

/// All rounds, as rows.
fn measured(plan: &Plan, progress: &Progress) -> Result<Vec<Row>> {
    let mut samples: [Vec<Sample>; Path::ALL.len()] = Default::default();
    for round in 0..plan.rounds {
        for index in 0..Path::ALL.len() {
            let path = Path::in_round(round, index);
            progress.begin(round, path);
            let sample = measure::measure(path, plan)
                .with_context(|| format!("the path {} could not be measured", path.name()))?;
            progress.end(round, path, &sample);
            samples[path as usize].push(sample);
        }
    }
    progress.finish();
    let rows = Path::ALL.iter().zip(&samples);
    Ok(rows.filter_map(|(&path, samples)| Row::of(path, plan.connections, samples)).collect())
}
