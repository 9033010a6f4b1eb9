//! Runs scripts with the project's own runner, prints the result of each and how many have passed: `cargo run
//! -p rxo-packetdrill --example pkt -- FILE|FOLDER …`. A folder stands for all scripts in it and below. As in
//! packetdrill, segments that leave after the last event of a script are ignored; the crate's tests check
//! them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut scripts = Vec::new();
    for path in std::env::args().skip(1) {
        if let Err(error) = collect(Path::new(&path), &mut scripts) {
            println!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    }
    let passed = scripts.iter().filter(|script| passes(script)).count();
    println!("{passed} of {} scripts passed", scripts.len());
    if passed == scripts.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Adds `path`, or all scripts below it in order.
fn collect(path: &Path, scripts: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        scripts.push(path.to_owned());
        return Ok(());
    }
    let entries = path.read_dir()?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    entries.retain(|entry| entry.is_dir() || entry.extension().is_some_and(|end| end == "pkt"));
    entries.sort();
    entries.iter().try_for_each(|entry| collect(entry, scripts))
}

fn passes(path: &Path) -> bool {
    let name = path.display().to_string();
    let ended = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}")).and_then(
        |source| {
            rxo_packetdrill::run::run_foreign(&name, &source).map_err(|failure| failure.to_string())
        },
    );
    match &ended {
        Ok(()) => println!("ok    {name}"),
        Err(why) => println!("FAIL  {why}"),
    }
    ended.is_ok()
}
