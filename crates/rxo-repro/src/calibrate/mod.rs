//! `rxo calibrate`: what receiving costs on this machine, measured, for projections.
//!
//! The flags become a [`plan`]; its settings are measured in a private network, round by round, one
//! after the other ([`run`]), and the engine alone in memory ([`engine`]); least squares make costs
//! of them ([`result`]), with the spread of the rounds. What `--save FILE` wrote is read
//! by [`costs`] for `rxo analyze --costs FILE`.

pub mod costs;
mod engine;
mod plan;
mod result;
mod run;

use anyhow::{Context, Result, bail};
use rxo_console::output;

use self::engine::Workload;
use self::plan::{Plan, Setting};
use self::result::{Calibration, Measured};
use self::run::Sample;
use crate::experiment;
use crate::flags::CalibrateFlags;
use crate::machine::Machine;
use crate::progress::Progress;

/// Measures, prints the costs, and saves them where asked.
///
/// # Errors
/// When a flag cannot be, private networks cannot be made, a transfer breaks, the measurements do
/// not tell the costs apart, or the file cannot be written.
pub fn command(flags: &CalibrateFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    if cfg!(debug_assertions) {
        output::note(
            "this build has debug assertions, and what it measures of rxo means nothing; build it \
             with --release",
        );
    }
    let privilege = experiment::privilege()?;
    let measured = measured(&plan, &Progress::new(plan.measurements(), flags.json))?;
    let Some(calibration) = Calibration::of(&measured, &plan, Machine::read(privilege)) else {
        bail!(
            "the measurements do not tell the costs of packets and bytes apart: the machine is \
             too busy; run it when less else runs, or with a larger --seconds"
        );
    };
    let saved = plan.save.as_deref().map_or(Ok(()), |path| calibration.save(path));
    experiment::print(&calibration, flags.json, || calibration.text())?;
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
            progress.begin(&format!("round {}: {setting}", round + 1));
            let sample = run::measure(setting, plan)
                .with_context(|| format!("{setting} could not be measured"))?;
            progress.end(&line(round, setting, &sample));
            samples.push((setting, sample));
        }
        measured.rounds.push(samples);
        measured.coalesce_ns.push(workload.ns_per_packet(plan.engine));
    }
    progress.finish();
    Ok(measured)
}

fn line(round: usize, setting: Setting, sample: &Sample) -> String {
    let Sample { ns, gbit_per_s, deliveries, .. } = sample;
    format!(
        "round {}  {:<24}  {:>5.1} packets per delivery  {ns:>6.0} ns per packet  {gbit_per_s:>5.1} \
         Gbit/s",
        round + 1,
        setting.to_string(),
        1.0 / deliveries
    )
}
