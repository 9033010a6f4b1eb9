//! `rxo-lab scale`: what more cores and faster wires take, from costs that are measured, and where memory ends it.
//!
//! `rxo_bench::workers` measures; `model` computes; `page` writes the tables and the plot of docs/scale.md.

mod model;
mod page;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use rxo_bench::workers::{Figures, measured};
use rxo_console::output;

use crate::flags::ScaleFlags;

/// Rounds of a measurement.
const ROUNDS: u32 = 15;

/// Measures, or reads what was measured, and prints the tables. With `--out` it also keeps the figures and the plot.
///
/// # Errors
/// If a file cannot be read or written.
pub(crate) fn run(flags: &ScaleFlags) -> Result<()> {
    let figures = match &flags.from {
        Some(file) => kept(file)?,
        None => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            measured(cores, ROUNDS)?
        }
    };
    if let Some(folder) = &flags.out {
        let write = |name: &str, text: String| {
            let path: PathBuf = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        write("scale.json", serde_json::to_string_pretty(&figures)? + "\n")?;
        write("scale.svg", page::plot(&figures))?;
    }
    output::text(&page::markdown(&figures))
}

fn kept(file: &std::path::Path) -> Result<Figures> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no such file", file.display()))
}
