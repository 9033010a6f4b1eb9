//! `rxo calibrate`: what receiving costs on this machine, measured, for projections.
//!
//! The flags become a [`plan`]; its settings are measured in a private network, round by round, one
//! after the other ([`run`]), and the engine alone in memory ([`engine`]); least squares make costs
//! of them ([`result`]), with the spread of the rounds. `rxo analyze --costs FILE` reads what
//! `--save FILE` wrote.

mod engine;
mod plan;
mod progress;
mod result;
mod run;

use anyhow::{Context, Result, bail};
use rxo_console::output;
use rxo_lab::{Privilege, become_root_in_user_namespace};

use self::engine::Workload;
use self::plan::Plan;
use self::progress::Progress;
use self::result::{Calibration, Measured};
use crate::flags::CalibrateFlags;
use crate::machine::Machine;

/// Measures, prints the costs, and saves them where asked.
///
/// # Errors
/// When a flag cannot be, private networks cannot be made, a transfer breaks, the measurements do
/// not tell the costs apart, or the file cannot be written.
pub fn command(flags: &CalibrateFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    if cfg!(debug_assertions) {
        output::note("this build is not optimised, and what it measures of rxo means nothing");
    }
    // Before anything starts a thread: only a process of one thread can get its own namespaces.
    let privilege = match become_root_in_user_namespace()? {
        Privilege::Given => "root",
        Privilege::UserNamespace => "user-namespace",
    };
    let measured = measured(&plan, &Progress::new(plan.measurements(), flags.json))?;
    let Some(calibration) = Calibration::of(&measured, &plan, Machine::read(privilege)) else {
        bail!(
            "the measurements do not tell the costs of packets and bytes apart: the machine is \
             too busy; run it when less else runs, or with a larger --seconds"
        );
    };
    let saved = plan.save.as_deref().map_or(Ok(()), |path| calibration.save(path));
    if flags.json {
        output::json_document(&calibration)?;
    } else {
        output::text(&calibration.text())?;
    }
    saved
}

/// All rounds.
fn measured(plan: &Plan, progress: &Progress) -> Result<Measured> {
    let workload = Workload::new();
    let mut measured = Measured::default();
    for round in 0..plan.rounds {
        let mut samples = Vec::new();
        for place in 0..plan.settings.len() {
            let setting = plan.in_round(round, place);
            progress.begin(round, setting);
            let sample = run::measure(setting, plan)
                .with_context(|| format!("{setting} could not be measured"))?;
            progress.end(round, setting, &sample);
            samples.push((setting, sample));
        }
        measured.rounds.push(samples);
        measured.coalesce_ns.push(workload.ns_per_packet(plan.engine));
    }
    progress.finish();
    Ok(measured)
}
