//! `cargo xtask test`: everything that must hold, as steps in order, cheap ones first.
//!
//! `.ci/run` and the README call exactly this. The first step that fails ends the run. What a step
//! could not check is said at the end, and is a failure where nobody reads it (`CI=true`).

mod fuzz;
mod live;
mod no_std;
mod options;
mod report;
mod steps;
mod tally;
mod tools;

use std::process::ExitCode;

use anyhow::Result;

use self::options::Options;
use self::report::Report;
use self::steps::{STEPS, Scene};

/// Runs the steps that `arguments` choose. A failed step has been reported; its code is 1.
///
/// # Errors
/// An unknown option or step, or a workspace that cargo cannot read.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = Options::parse(arguments)?;
    if options.list {
        for step in STEPS {
            println!("{:<13} {}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let scene = Scene::set()?;
    let mut report = Report::default();
    for step in STEPS.iter().filter(|step| options.wants(step)) {
        report.begin(step.name, step.about);
        let result = (step.run)(&scene, &mut report);
        if !report.end(result) {
            break;
        }
    }
    report.print();
    Ok(if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
