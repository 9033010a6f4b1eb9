//! Several guests at once, each with a file, measured by `rxo-lab guests`.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;

/// Number of guests at once.
const GUESTS: usize = 4;

/// The results of the file transfers.
#[derive(Debug, Serialize)]
pub(super) struct Together {
    guests: usize,
    /// Guests that received their file and returned it with the right hash.
    pub(super) intact: usize,
    /// Smallest and largest number of copies of each byte into a guest's memory.
    pub(super) copies: [f64; 2],
}

impl Together {
    /// Returns the number of guests with a wrong file.
    pub(super) const fn broken(&self) -> usize {
        self.guests - self.intact
    }
}

/// Boots the guests, and waits until all transfers are done.
pub(super) fn measure() -> Result<Together> {
    // The benchmark is a command of the same program.
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["guests", "--json", "--guests", &GUESTS.to_string()]);
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let outcomes: Vec<Value> = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("rxo-lab guests: {}", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    let copies = outcomes.iter().map(|outcome| outcome["figures"]["copies"].as_f64());
    let Some(copies) = copies.collect::<Option<Vec<f64>>>() else {
        bail!("rxo-lab guests does not say how often bytes were copied");
    };
    Ok(Together {
        guests: GUESTS,
        intact: outcomes.iter().filter(|outcome| outcome["intact"] == true).count(),
        copies: [
            copies.iter().copied().fold(f64::INFINITY, f64::min),
            copies.iter().copied().fold(0.0, f64::max),
        ],
    })
}
