//! Paths measured side by side in a private network: the [`demo()`] and the calibration
//! ([`calibrate()`]), and the measuring that every experiment shares.
//!
//! Separate from the command, because the laboratory's experiments are measured in the same way. From the
//! top: a plan, made from the flags that were typed ([`flags`]), is an [`experiment`]. It is measured in
//! [`turns`] in a network of `rxo-testbed`; samples become rows, rows become findings, and these a report.
//! A measurement runs a thread of rxo's ([`running`]), such as a worker between two devices ([`through`]),
//! or a bulk sender behind it ([`sending`]). Medians have their spread ([`stats`]), and the [`load`] of other
//! processes may forbid a verdict. The process's own namespaces end with it; nothing else is touched.

mod calibrate;
mod demo;
pub mod experiment;
pub mod flags;
pub mod limits;
pub mod load;
pub mod losses;
pub mod machine;
mod progress;
pub mod running;
pub mod sending;
pub mod stats;
pub mod through;
pub mod turns;
pub mod wrap;

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use rxo_console::output;

use self::flags::{CalibrateFlags, DemoFlags};

pub use self::calibrate::costs;

/// Measures what receiving costs on this machine, prints it, and saves it if asked to. When `stop` is
/// set, the costs are of the rounds until then.
///
/// # Errors
/// When a flag is invalid, private networks cannot be made, a transfer breaks, the measurements do not
/// tell the costs apart, or the file cannot be written; with `--save`, when the machine was busy.
pub fn calibrate(flags: &CalibrateFlags, stop: &AtomicBool) -> Result<()> {
    let plan = calibrate::Plan::from_flags(flags)?;
    if cfg!(debug_assertions) {
        output::note(
            "this build has debug assertions, and what it measures of rxo means nothing; build it \
             with --release",
        );
    }
    experiment::run(&plan, stop)
}

/// Measures the same transfer over several paths, and prints them side by side. When `stop` is set,
/// it prints what was measured until then.
///
/// # Errors
/// When a flag is invalid, private networks cannot be made, a transfer breaks, or bytes arrived that
/// were not sent; after `stop`, when the partial result has been printed.
pub fn demo(flags: &DemoFlags, stop: &AtomicBool) -> Result<()> {
    if flags.reverse {
        experiment::run(&demo::reverse::Plan::from_flags(flags)?, stop)
    } else {
        experiment::run(&demo::Plan::from_flags(flags)?, stop)
    }
}
