//! The rounds that benchmarks share: their flags, their turns, and the document of their results.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Args;
use rxo_demo::load::disturbance;
use rxo_demo::machine::Machine;
use rxo_demo::turns::{Cases, Turns};
use serde::Serialize;

/// The number of rounds.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// Run one round only, to check that everything works; not a measurement.
    #[arg(long, conflicts_with = "rounds")]
    once: bool,
    /// The number of rounds; each contender has one turn in a round.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
}

impl Rounds {
    /// Begins a run of `usual` rounds, unless the user has chosen another number.
    pub(crate) fn begin(&self, usual: u32) -> Run {
        Run::of(if self.once { 1 } else { self.rounds.unwrap_or(usual) })
    }
}

/// A report of rows alone.
#[derive(Debug, Serialize)]
pub(crate) struct Rows<R> {
    pub(crate) rows: Vec<R>,
}

/// A run of a benchmark.
pub(crate) struct Run {
    turns: Turns<'static>,
    rounds: u32,
}

/// A benchmark ends with its process when the user interrupts.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Run {
    /// Begins a run of so many rounds.
    pub(crate) fn of(rounds: u32) -> Self {
        Self { turns: Turns::new(0, true, &NEVER), rounds }
    }

    /// Measures each of `subjects` once in each round, in turn; each round begins with another one. Returns the samples
    /// of each.
    ///
    /// # Errors
    /// The first error of `measure`, with the name of its subject.
    pub(crate) fn measure<T, S>(
        &self,
        subjects: &mut [T],
        name: impl Fn(&T) -> String,
        mut measure: impl FnMut(&mut T) -> Result<S>,
    ) -> Result<Vec<Vec<S>>> {
        let names: Vec<_> = subjects.iter().map(name).collect();
        let places: Vec<_> = (0..subjects.len()).collect();
        let cases = Cases { cases: &places, rounds: self.rounds as usize, rotated: places.len() };
        let measure = |place: usize, _| measure(&mut subjects[place]);
        self.turns.measure(cases, |place| names[place].clone(), measure, |_| String::new())
    }

    /// Returns the reason why times permit no verdict; `None` if the machine was idle enough.
    pub(crate) fn busy(&self) -> Option<String> {
        disturbance(&self.turns.loads())
    }

    /// Prints `report` as JSON, with the machine and its load; `lab/report` makes tables of it.
    pub(crate) fn print(&self, report: &impl Serialize) -> Result<()> {
        #[derive(Serialize)]
        struct Document<'r, R> {
            machine: Machine,
            rounds: u32,
            busy: Option<String>,
            #[serde(flatten)]
            report: &'r R,
        }
        self.turns.finish();
        let (machine, rounds, busy) = (Machine::read("not recorded"), self.rounds, self.busy());
        let document = Document { machine, rounds, busy, report };
        println!("{}", serde_json::to_string_pretty(&document)?);
        Ok(())
    }
}
