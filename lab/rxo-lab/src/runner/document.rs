//! The document of results: `rxo-lab/results/1`, whose schema is `lab/report/schema/results.schema.json`.

use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rxo_console::log::timestamp;
use rxo_console::numbers::rounded;
use rxo_demo::load::Load;
use rxo_demo::machine::Machine;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::claim::{Claim, book};
use crate::figure::{Drawn, Figure};
use crate::study::Outcome;

/// The results of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Document {
    schema: &'static str,
    rxo: Build,
    command: Vec<String>,
    extent: &'static str,
    machine: Place,
    started: String,
    seconds: f64,
    /// The reason why the run is incomplete; `None` if it is complete.
    pub(super) partial: Option<String>,
    pub(super) experiments: Vec<Repeated>,
    #[serde(skip)]
    since: Instant,
}

/// The build that measured.
#[derive(Debug, Serialize)]
struct Build {
    version: &'static str,
    /// The commit of the sources; `None` outside their repository.
    commit: Option<String>,
    /// "checked" for a build with debug assertions, whose counts are not those of a release.
    build: &'static str,
}

/// The machine that measured.
#[derive(Debug, Serialize)]
struct Place {
    processor: String,
    cores: usize,
    kernel: String,
    hypervisor: bool,
    memory_mib: Option<u64>,
    privilege: &'static str,
}

/// The results of one experiment.
#[derive(Debug, Serialize)]
pub(super) struct Repeated {
    id: &'static str,
    paper: Option<&'static str>,
    title: &'static str,
    seconds: f64,
    load: Vec<Turn>,
    pub(super) claims: Vec<Claim>,
    figures: Vec<Drawn>,
    notes: Vec<String>,
    missing: Vec<String>,
    measured: Map<String, Value>,
}

/// The load during one turn.
#[derive(Debug, Serialize)]
struct Turn {
    turn: String,
    others_percent: f64,
    stolen_percent: f64,
    permits_verdict: bool,
}

impl Document {
    /// Begins a document of a run of this extent.
    pub(super) fn begin(extent: &'static str, privilege: &'static str) -> Self {
        let Machine { cpu, cores, kernel, virtual_machine, memory_mib, privilege } =
            Machine::read(privilege);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let build = if cfg!(debug_assertions) { "checked" } else { "optimised" };
        Self {
            schema: "rxo-lab/results/1",
            rxo: Build { version: env!("CARGO_PKG_VERSION"), commit: commit(), build },
            command: command(std::env::args()),
            extent,
            machine: Place {
                processor: cpu,
                cores,
                kernel,
                hypervisor: virtual_machine,
                memory_mib,
                privilege,
            },
            started: timestamp(since_1970),
            seconds: 0.0,
            partial: None,
            experiments: Vec::new(),
            since: Instant::now(),
        }
    }

    /// Adds an experiment that has been measured.
    pub(super) fn add(
        &mut self,
        id: &'static str,
        (outcome, claims): (Outcome, Vec<Claim>),
        (loads, seconds): (Vec<(String, Load)>, f64),
    ) {
        let Outcome { figures, facts, missing, measured, .. } = outcome;
        let book = book(id);
        let words =
            |figure: &Figure| book.and_then(|book| book.figures.get(figure.number)).cloned();
        let drawn = |figure: Figure| {
            let words = words(&figure).unwrap_or_default();
            Drawn::new(figure, words)
        };
        let figures = figures.into_iter().map(drawn).collect();
        let notes = book.map_or_else(Vec::new, |book| book.notes(&facts));
        let paper = book.and_then(|book| book.paper.as_deref());
        let title = book.map_or("", |book| &book.title);
        let turn = |(turn, load): (String, Load)| Turn {
            turn,
            others_percent: load.others_percent,
            stolen_percent: load.stolen_percent,
            permits_verdict: load.permits_verdict,
        };
        let load = loads.into_iter().map(turn).collect();
        let seconds = rounded(seconds, 1);
        let repeated =
            Repeated { id, paper, title, seconds, load, claims, figures, notes, missing, measured };
        self.experiments.push(repeated);
        self.seconds = rounded(self.since.elapsed().as_secs_f64(), 1);
    }
}

/// Returns the command line without the folders of the program and of the results, which mean nothing elsewhere.
fn command(mut arguments: impl Iterator<Item = String>) -> Vec<String> {
    arguments.next();
    let mut kept = vec!["rxo-lab".to_owned()];
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--out" => _ = arguments.next(),
            it if it.starts_with("--out=") => {}
            _ => kept.push(argument),
        }
    }
    kept
}

/// Returns the commit of the sources that this program was built from; `None` if git or they are not here.
fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty", "--abbrev=8"]);
    let output = git.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|commit| output.status.success() && !commit.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_no_folder_of_this_machine() {
        let shown = |line: &str| command(line.split(' ').map(str::to_owned)).join(" ");
        for line in ["/here/rxo-lab all --out /there --quick", "./rxo-lab all --quick --out=/there"]
        {
            assert_eq!(shown(line), "rxo-lab all --quick");
        }
    }
}
