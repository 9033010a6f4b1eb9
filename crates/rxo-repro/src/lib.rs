//! Experiments in private networks: those of the papers ([`repro()`]), the [`demo()`] and
//! the calibration ([`calibrate()`]).
//!
//! From the top: each experiment has its module, which first makes a plan of what was typed (its
//! flags stand in [`flags`]), then measures it in networks of `rxo-lab`, and prints what was found.
//! What the experiments share: a worker between two devices (`through`), a bulk sender behind it
//! (`sending`), the machine and its cores, medians with their spread, figures, and statements that
//! are held against what was measured.
//! Nothing outside the process's own namespaces is touched, and they go with the process.

mod calibrate;
mod demo;
mod figure;
pub mod flags;
mod gallatin;
mod machine;
mod menon;
mod outcome;
mod progress;
mod rounds;
mod rsc;
mod sending;
mod statement;
mod stats;
mod through;
mod wrap;

use std::sync::atomic::AtomicBool;

use anyhow::Result;

use self::flags::{Paper, ReproFlags};

pub use self::calibrate::command as calibrate;
pub use self::demo::command as demo;

/// Repeats a paper's experiments and prints them beside its own results. When `stop` is set, it
/// prints what was measured until then.
///
/// # Errors
/// When a flag is invalid, private networks cannot be made, a transfer breaks or arrives wrong, or
/// a file cannot be read or written; after `stop`, when the partial result has been printed.
pub fn repro(flags: &ReproFlags, stop: &AtomicBool) -> Result<()> {
    match &flags.paper {
        Paper::Gallatin(flags) => gallatin::command(flags, stop),
        Paper::Menon(flags) => menon::command(flags, stop),
        Paper::Rsc(flags) => rsc::command(flags, stop),
    }
}
