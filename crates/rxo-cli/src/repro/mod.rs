//! `rxo repro`: the experiments of the papers, repeated on this machine, beside what the papers
//! report. A module for each paper.

mod figure;
mod gallatin;
mod menon;
mod outcome;
pub(crate) mod progress;
mod rounds;
mod rsc;
mod statement;

use anyhow::Result;

use crate::flags::{Paper, ReproFlags};

/// Repeats a paper's experiments and prints them beside its own.
///
/// # Errors
/// As the paper's module says.
pub(crate) fn command(flags: &ReproFlags) -> Result<()> {
    match &flags.paper {
        Paper::Gallatin(flags) => gallatin::command(flags),
        Paper::Menon(flags) => menon::command(flags),
        Paper::Rsc(flags) => rsc::command(flags),
    }
}
