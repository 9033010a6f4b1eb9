//! `cargo xtask bench analyze`: measures how fast `rxo` reads, coalesces, restores and compares captures, and
//! how fast `tshark` reads them.
//!
//! Three captures are made in the target directory and deleted afterwards: 1 GB of full-size segments,
//! packets of 100 bytes, and a million flows. Coalesced and restored captures go to `/dev/null`, so that the
//! speed of the disk does not count. The programs take turns, so that other load on the machine affects all
//! alike.

pub(super) mod capture;
pub(super) mod measure;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use self::measure::Run;
use self::table::{Row, Target};
use crate::UsageError;
use crate::apt;
use crate::sh::Program;
use crate::workspace::Workspace;

const FULL_BYTES: u64 = 1_000_000_000;
const SMALL_BYTES: u64 = 250_000_000;
const FLOWS: u32 = 1_000_000;
const ROUNDS: usize = 5;

/// A program to measure: its name in the table, its path, and its arguments.
struct Contender {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    runs: Vec<Run>,
}

/// Makes the captures, measures, prints the table, deletes the captures.
///
/// # Errors
/// A flag is unknown, a package is missing, or a program fails.
pub(super) fn run(arguments: &[String]) -> Result<ExitCode> {
    let is_json = match arguments {
        [] => false,
        [flag] if flag == "--json" => true,
        [other, ..] => {
            let message = format!("bench analyze takes --json, not {other:?}");
            return Err(UsageError(message).into());
        }
    };
    apt::ensure(&[apt::TSHARK])?;
    let workspace = Workspace::load()?;
    Program::cargo(&workspace.root, "build --release --quiet -p rxo-cli").run_aside()?;
    let folder = Folder::make(&workspace.target)?;
    let rows = measure(&workspace.target.join("release/rxo"), &folder.0)?;
    drop(folder);
    let targets = targets(&rows);
    if is_json {
        println!(
            "{}",
            serde_json::to_string_pretty(&json!({ "rows": rows_json(&rows),
            "targets": targets.iter().map(Target::json).collect::<Vec<_>>() }))?
        );
    } else {
        println!("{}", table::text(&rows, &targets));
    }
    Ok(ExitCode::SUCCESS)
}

fn rows_json(rows: &[Row]) -> Vec<serde_json::Value> {
    rows.iter().map(Row::json).collect()
}

/// A folder for the captures, deleted when this value is dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn make(target: &Path) -> Result<Self> {
        let path = target.join(format!("bench-analyze-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("bench: {} stays: {error}", self.0.display());
        }
    }
}

const ONE: &str = "rxo, one point, trusted";
const SWEEP: &str = "rxo, 12 points, trusted";
const TSHARK: &str = "tshark -q -z conv,tcp";
const MANY: &str = "rxo, a million flows";
const COALESCE: &str = "rxo coalesce";
const EXPAND: &str = "rxo expand";
const COALESCE_SMALL: &str = "rxo coalesce, 100 bytes";
const EXPAND_SMALL: &str = "rxo expand, 100 bytes";
const VERIFY_MANY: &str = "rxo verify, a million flows";

fn measure(rxo: &Path, folder: &Path) -> Result<Vec<Row>> {
    let [full, small, many] = ["full", "small", "many"].map(|name| folder.join(name));
    eprintln!("bench: writing captures of 1 GB, of small packets and of a million flows");
    let full_packets = capture::full_size(&full, FULL_BYTES)?;
    let small_packets = capture::small(&small, SMALL_BYTES)?;
    let many_packets = capture::many_flows(&many, FLOWS)?;
    let [full, small, many] = [full, small, many].map(|path| path.display().to_string());
    for capture in [&full, &small] {
        let arguments = ["coalesce", capture, &format!("{capture}.co"), "--policy", "remember"];
        measure::run(rxo, &arguments.map(str::to_owned))?;
    }
    let contender = |name, program: &Path, flags: &str| Contender {
        name,
        program: program.to_owned(),
        arguments: flags
            .replace("FULL", &full)
            .replace("SMALL", &small)
            .replace("MANY", &many)
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        runs: Vec::new(),
    };
    let tshark = Path::new("tshark");
    let sweep = "analyze FULL --checksum trust --sweep flows=1..4 max_segments=8..32*2";
    let mut contenders = [
        contender(ONE, rxo, "analyze FULL --checksum trust --no-advice"),
        contender("rxo, with advice, trusted", rxo, "analyze FULL --checksum trust"),
        contender("rxo, one point, verified", rxo, "analyze FULL --no-advice"),
        contender("rxo, with advice, verified", rxo, "analyze FULL"),
        contender(SWEEP, rxo, sweep),
        contender(TSHARK, tshark, "-r FULL -q -z conv,tcp"),
        contender(MANY, rxo, "analyze MANY"),
        contender(COALESCE, rxo, "coalesce FULL /dev/null --policy remember"),
        contender(EXPAND, rxo, "expand FULL.co /dev/null"),
        contender(COALESCE_SMALL, rxo, "coalesce SMALL /dev/null --policy remember"),
        contender(EXPAND_SMALL, rxo, "expand SMALL.co /dev/null"),
        contender(VERIFY_MANY, rxo, "verify MANY MANY"),
    ];
    for round in 0..ROUNDS {
        for contender in &mut contenders {
            eprintln!("bench: round {} of {ROUNDS}: {}", round + 1, contender.name);
            contender.runs.push(measure::run(&contender.program, &contender.arguments)?);
        }
    }
    let packets = |name| match name {
        MANY | VERIFY_MANY => many_packets,
        COALESCE_SMALL | EXPAND_SMALL => small_packets,
        _ => full_packets,
    };
    Ok(contenders.iter().map(|each| Row::new(each.name, packets(each.name), &each.runs)).collect())
}

/// Compares the measurements with the targets.
fn targets(rows: &[Row]) -> Vec<Target> {
    let row = |name: &str| rows.iter().find(|row| row.name == name);
    let seconds = |name| row(name).map_or(f64::NAN, |row| row.median_s);
    let peak_mb = |name| row(name).map_or(f64::NAN, |row: &Row| row.peak_mb);
    let gb_s = |name, bytes: u64| bytes as f64 / 1e9 / seconds(name);
    vec![
        Target::at_most("1 GB of full-size segments, seconds", seconds(ONE), 1.5),
        Target::at_most("share of tshark's time", seconds(ONE) / seconds(TSHARK), 1.0 / 3.0),
        Target::at_most("12 points for the time of one, times", seconds(SWEEP) / seconds(ONE), 3.0),
        Target::at_most("a million flows, peak MB", peak_mb(MANY), 300.0),
        Target::at_least("coalesce, GB/s", gb_s(COALESCE, FULL_BYTES), 0.8),
        Target::at_least("expand, GB/s", gb_s(EXPAND, FULL_BYTES), 0.8),
        Target::at_least("coalesce, 100 bytes, GB/s", gb_s(COALESCE_SMALL, SMALL_BYTES), 0.25),
        Target::at_least("expand, 100 bytes, GB/s", gb_s(EXPAND_SMALL, SMALL_BYTES), 0.25),
        Target::at_most("verify of a million flows, peak MB", peak_mb(VERIFY_MANY), 200.0),
    ]
}
