//! `cargo xtask bench bindings`: measures the packets a second of librxo and of the Python package, and of
//! the same work in Rust.
//!
//! `capi/examples/speed.rs`, `speed.c` and `py/examples/speed.py` run the engine in a loop. On a capture of 1
//! GB, `rxo analyze` and `rxo coalesce` are compared with `rxo.analyze` and `rxo.coalesce`. The programs take
//! turns; the table has medians.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::analyze::{Folder, capture, measure};
use crate::sh::Program;
use crate::workspace::Workspace;
use crate::{UsageError, apt, capi};

const BYTES: u64 = 1_000_000_000;
const ROUNDS: usize = 5;
const LANGUAGES: [&str; 3] = ["Rust", "C", "Python"];

/// Packets a second, by task and language.
#[derive(Default)]
struct Rates(BTreeMap<String, [Vec<f64>; LANGUAGES.len()]>);

/// Builds everything in release, measures, and prints the table.
///
/// # Errors
/// There is an argument, a package is missing, or a program fails.
pub(super) fn run(arguments: &[String]) -> Result<ExitCode> {
    if let [other, ..] = arguments {
        return Err(UsageError(format!("bench bindings takes no {other:?}")).into());
    }
    apt::ensure(&[apt::CXX, apt::PYTHON])?;
    let workspace = Workspace::load()?;
    let place = Folder::make(&workspace.target)?;
    let folder = &place.0;
    prepare(&workspace, folder)?;
    let path = folder.join("full");
    let packets = capture::full_size(&path, BYTES)?;
    let mut rates = Rates::default();
    for round in 0..ROUNDS {
        eprintln!("bench: round {} of {ROUNDS}", round + 1);
        rates.read(0, &output(&workspace.target.join("release/examples/speed"), &[], folder)?);
        rates.read(1, &output(&folder.join("speed"), &[], folder)?);
        let [script, path] = [&workspace.root.join("py/examples/speed.py"), &path]
            .map(|path| path.display().to_string());
        let given = [script, path.clone(), packets.to_string()];
        rates.read(2, &output(Path::new("python3"), &given, folder)?);
        for (name, flags) in [("analyze", vec![]), ("coalesce", vec!["/dev/null".to_owned()])] {
            let given = [vec![name.to_owned(), path.clone()], flags].concat();
            let run = measure::run(&workspace.target.join("release/rxo"), &given)?;
            rates.add(name, 0, packets as f64 / run.seconds);
        }
    }
    println!("{}", rates.text());
    Ok(ExitCode::SUCCESS)
}

/// Builds the command and both examples, and puts the Python package into `folder`.
fn prepare(workspace: &Workspace, folder: &Path) -> Result<()> {
    let builds = ["-p rxo-cli -p rxo-py", "-p rxo-capi --example speed"];
    for what in builds {
        let build = format!("build --release --quiet {what}");
        Program::cargo(&workspace.root, &build).run_aside()?;
    }
    capi::install_released(workspace, folder)?;
    let source = workspace.root.join("capi/examples/speed.c");
    let [source, program, header, library] =
        [&source, &folder.join("speed"), &folder.join("include"), &folder.join("lib/librxo.a")]
            .map(|path| path.display().to_string());
    let include = format!("-I{header}");
    let flags = ["-O2", &source, "-o", &program, &include, &library, "-lpthread", "-lm", "-ldl"];
    Program::new(folder, "cc", flags).run_aside()?;
    let package = folder.join("rxo");
    fs::create_dir(&package)?;
    for entry in fs::read_dir(workspace.root.join("py/python/rxo"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "py") {
            fs::copy(&path, package.join(path.file_name().unwrap_or_default()))?;
        }
    }
    fs::copy(workspace.target.join("release/lib_rxo.so"), package.join("_rxo.abi3.so"))
        .context("the Python package was not built")?;
    Ok(())
}

/// Runs `program`, with `folder` in Python's path, and returns its output.
fn output(program: &Path, arguments: &[String], folder: &Path) -> Result<String> {
    let folder_name = folder.display().to_string();
    Program::new(folder, &program.to_string_lossy(), arguments)
        .env("PYTHONPATH", &folder_name)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
}

impl Rates {
    fn add(&mut self, name: &str, language: usize, rate: f64) {
        self.0.entry(name.to_owned()).or_default()[language].push(rate);
    }

    /// Reads lines of a name, a tab and a rate, and adds the rates to `language`.
    fn read(&mut self, language: usize, text: &str) {
        for (name, rate) in text.lines().filter_map(|line| line.split_once('\t')) {
            if let Ok(rate) = rate.parse() {
                self.add(name, language, rate);
            }
        }
    }

    fn text(&mut self) -> String {
        let head = format!(
            "{:<28}{}",
            "million packets/s",
            LANGUAGES.map(|name| format!("{name:>10}")).concat()
        );
        let rows = self.0.iter_mut().map(|(name, rates)| {
            let cells = rates.each_mut().map(|rates| format!("{:>10}", median(rates)));
            format!("{name:<28}{}", cells.concat())
        });
        std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the median in millions a second, or a dash if `rates` is empty.
fn median(rates: &mut [f64]) -> String {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", rate / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_medians_of_what_the_programs_print() {
        let mut rates = Rates::default();
        for line in ["engine\t1000000\n", "engine\t9000000\nnoise", "engine\t2000000"] {
            rates.read(1, line);
        }
        let text = rates.text();
        let row = text.lines().last().unwrap_or_default();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["engine", "-", "2.00", "-"]);
    }
}
