//! `cargo xtask test`: runs all checks of the project as steps, cheap ones first.
//!
//! Without options it runs lints and the tests of each documented promise, in some ten minutes on two cores.
//! `.ci/run` does that, then runs `--ci`, which adds the steps that fit into half an hour. `--all` has every
//! step. The first failure ends the run. A step that cannot run is reported as not run; a step that can check
//! only a part is noted at the end. Under `CI=true`, where nobody reads notes, a required step fails instead.

mod c;
mod clusters;
mod dist;
mod dpdk;
mod fuzz;
mod live;
mod msrv;
mod no_std;
mod options;
mod python;
mod report;
mod steps;
mod tally;
mod times;
mod tools;

use std::process::ExitCode;

use anyhow::Result;

use self::options::Options;

use self::report::Report;
use self::steps::{STEPS, Scene, When};
use self::times::Times;

/// Runs the steps that `arguments` select. The exit code is 1 if a step failed, which has then been printed.
///
/// # Errors
/// An option or step is unknown, cargo cannot read the workspace, or the times cannot be written.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = Options::parse(arguments)?;
    let scene = Scene::set(&options)?;
    let mut times = Times::read(&scene.workspace.target);
    if options.list {
        print!("{}", list(&options, &times));
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = Report::default();
    for step in STEPS.iter().filter(|step| options.wants(step)) {
        report.begin(step.name, step.about);
        let result = (step.run)(&scene, &mut report);
        let took = report.end(result);
        if report.has_failed() {
            break;
        }
        // A step that did not run has no duration, which would overwrite that of an earlier run.
        let Some(took) = took else { continue };
        if let Err(error) = times.record(step.name, took) {
            report.note(format!("the seconds of {} were not kept: {error:#}", step.name));
        }
    }
    report.print();
    Ok(if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the list of steps, the seconds that each took last time, and the sum for those that `options`
/// select.
fn list(options: &Options, times: &Times) -> String {
    let mut text = format!("{:<14}{:>8}\n", "step", "seconds");
    let mut total = 0.0;
    for step in STEPS {
        let seconds = times.of(step.name);
        let shown = seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.1}"));
        let when = match step.when {
            When::Always => "",
            When::Ci => " (--ci)",
            When::All => " (--all)",
        };
        text += &format!("{:<14}{shown:>8}  {}{when}\n", step.name, step.about);
        if options.wants(step) {
            total += seconds.unwrap_or_default();
        }
    }
    text + &format!("{:<14}{total:>8.1}\n", "total")
}
