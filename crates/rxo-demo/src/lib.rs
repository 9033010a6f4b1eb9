//! Measures paths side by side in network namespaces: the [`demo()`], the calibration ([`calibrate()`]), and the
//! measuring code that all experiments share.
//!
//! This crate is separate from the command because the laboratory's experiments use the same measuring code. An
//! [`experiment`] is a plan made from the typed flags ([`flags`]). Its cases are measured in [`turns`], in a
//! network of `rxo-testbed`. Samples become rows, rows become findings, and findings become a report. A
//! measurement runs a thread of rxo ([`running`]), such as a worker between two devices ([`through`]), or a
//! bulk sender behind such a worker ([`sending`]). Medians have a spread ([`stats`]), and the [`load`] of other
//! processes may forbid a verdict. The network namespaces end with the process. The process changes nothing
//! else on the machine.

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

/// Measures the cost of receiving on this machine, prints it, and saves it with `--save`. If `stop` is set, the
/// costs come from the rounds measured before.
///
/// # Errors
/// If a flag is invalid, network namespaces cannot be created, a transfer breaks, the measurements do not determine the
/// costs, or the file cannot be written; with `--save`, also if the machine was busy.
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

/// Measures the same transfer over several paths, and prints them side by side. If `stop` is set, prints the
/// measurements that were made before.
///
/// # Errors
/// If a flag is invalid, network namespaces cannot be created, a transfer breaks, or bytes arrived wrong. If
/// `stop` was set, also returns an error after it has printed the partial result.
pub fn demo(flags: &DemoFlags, stop: &AtomicBool) -> Result<()> {
    if flags.reverse {
        experiment::run(&demo::reverse::Plan::from_flags(flags)?, stop)
    } else {
        experiment::run(&demo::Plan::from_flags(flags)?, stop)
    }
}
