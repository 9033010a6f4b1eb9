//! Options and output that benchmarks share.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

/// Options for the number of rounds and the output.
#[derive(Args, Debug)]
pub(crate) struct Rounds {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Run one round only, to check that everything works; not a measurement.
    #[arg(long, conflicts_with = "rounds")]
    once: bool,
    /// The number of rounds; each contender has one turn in a round.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
}

impl Rounds {
    /// Options for a single round.
    #[cfg(test)]
    pub(crate) const ONCE: Self = Self { json: false, once: true, rounds: None };

    /// Returns the number of rounds; `usual` unless the user has chosen another.
    pub(crate) fn number(&self, usual: u32) -> u32 {
        if self.once { 1 } else { self.rounds.unwrap_or(usual) }
    }

    /// Prints a report as JSON, or with the function `text`.
    pub(crate) fn print<R: Serialize>(
        &self,
        report: &R,
        text: impl Fn(&R) -> String,
    ) -> Result<()> {
        if self.json {
            println!("{}", serde_json::to_string_pretty(report)?);
        } else {
            print!("{}", text(report));
        }
        Ok(())
    }
}
