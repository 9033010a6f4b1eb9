//! `cargo xtask door`: measures how long a newcomer waits for a first build and run.
//!
//! Clones the repository at its last commit, builds it without earlier downloads and build results, and runs
//! the demo: the first of README's two commands. Then touches a file of the engine, and runs the demo again.
//! Prints the seconds of both runs, the compile time of each unit, and the size of the binary. Needs the
//! network and some minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::UsageError;
use crate::sh::{self, Program};
use crate::workspace::Workspace;

/// Number of compilation units in the table; the remaining ones are summed up.
const LISTED: usize = 24;
/// A source file whose change makes cargo rebuild the engine.
const ENGINE: &str = "crates/rxo-coalesce/src/lib.rs";

/// Seconds of the first run, and of the next run after a change.
struct Seconds {
    clone: f64,
    build: f64,
    demo: f64,
    rebuild: f64,
}

/// A compilation unit in cargo's report.
#[derive(Debug, PartialEq)]
struct Unit {
    name: String,
    seconds: f64,
}

/// Measures, and prints a table, or with `--json` a document.
///
/// # Errors
/// If there are other arguments, the registry cannot be reached, or a command fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let is_json = match arguments {
        [] => false,
        [flag] if flag == "--json" => true,
        _ => bail!(UsageError("door: no option but --json".to_owned())),
    };
    let root = Workspace::load()?.root;
    let place = Place::new()?;
    let (took, units) = measure(&root, &place)?;
    let binary = stripped_bytes(&place)?;
    if is_json {
        let units: Vec<Value> =
            units.iter().map(|unit| json!({"name": unit.name, "s": unit.seconds})).collect();
        let Seconds { clone, build, demo, rebuild } = took;
        println!(
            "{}",
            json!({"clone_s": clone, "build_s": build, "demo_s": demo, "rebuild_s": rebuild,
                   "stripped_bytes": binary, "units": units})
        );
    } else {
        print!("{}", table(&took, &units, binary));
    }
    Ok(())
}

/// A clone, and a folder for cargo's downloads and build results. Both are deleted on drop.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("rxo-door-{}", std::process::id()));
        fs::create_dir_all(path.join("cargo"))
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    fn clone_of(&self) -> PathBuf {
        self.0.join("rxo")
    }

    /// Returns cargo in the clone. Its registry is empty at first; only cargo's settings are copied from this
    /// machine.
    fn cargo(&self, arguments: &str) -> Result<Program> {
        let home = self.0.join("cargo");
        let mine = cargo_home().join("config.toml");
        if mine.exists() {
            fs::copy(&mine, home.join("config.toml"))
                .with_context(|| format!("cannot copy {}", mine.display()))?;
        }
        let target = self.clone_of().join("target");
        let cargo = Program::cargo(&self.clone_of(), arguments);
        Ok(cargo
            .env("CARGO_HOME", &home.to_string_lossy())
            .env("CARGO_TARGET_DIR", &target.to_string_lossy()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Only a folder below the system's folder for temporary files is deleted.
        _ = fs::remove_dir_all(&self.0);
    }
}

fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

fn measure(root: &Path, place: &Place) -> Result<(Seconds, Vec<Unit>)> {
    let (from, to) = (root.to_string_lossy(), place.clone_of());
    let arguments = ["clone", "--quiet", &from, &to.to_string_lossy()];
    let clone = timed(|| Program::new(&place.0, "git", arguments).run_aside())?;
    let build = timed(|| place.cargo("build --release --timings --quiet")?.run_aside())?;
    let units = units(&place.clone_of().join("target/cargo-timings/cargo-timing.html"))?;
    let demo = timed(|| place.cargo("run --release --quiet -- demo")?.run_aside())?;
    let engine = place.clone_of().join(ENGINE);
    let source = fs::read_to_string(&engine).with_context(|| format!("{}", engine.display()))?;
    fs::write(&engine, source + "\n// changed\n")?;
    let rebuild = timed(|| place.cargo("run --release --quiet -- --version")?.run_aside())?;
    Ok((Seconds { clone, build, demo, rebuild }, units))
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Returns the size of the binary without its symbols, in bytes; with symbols if `strip` is missing.
fn stripped_bytes(place: &Place) -> Result<u64> {
    let (binary, stripped) =
        (place.clone_of().join("target/release/rxo"), place.0.join("stripped"));
    if !sh::has_program("strip") {
        return Ok(fs::metadata(binary)?.len());
    }
    let (from, to) = (binary.to_string_lossy(), stripped.to_string_lossy());
    Program::new(&place.0, "strip", ["-o", &to, &from]).run_aside()?;
    Ok(fs::metadata(stripped)?.len())
}

/// Returns the compilation units in cargo's timing report, the longest first.
fn units(report: &Path) -> Result<Vec<Unit>> {
    let text = fs::read_to_string(report).with_context(|| format!("{}", report.display()))?;
    parse(&text).with_context(|| format!("{} has no units", report.display()))
}

fn parse(text: &str) -> Option<Vec<Unit>> {
    let (_, from) = text.split_once("UNIT_DATA = ")?;
    let (data, _) = from.split_once("];")?;
    let all: Vec<Value> = serde_json::from_str(&format!("{data}]")).ok()?;
    let unit = |value: &Value| {
        let target = value["target"].as_str().unwrap_or_default().trim();
        let name = format!("{} {target}", value["name"].as_str()?);
        Some(Unit { name: name.trim().to_owned(), seconds: value["duration"].as_f64()? })
    };
    let mut units: Vec<Unit> = all.iter().map(unit).collect::<Option<_>>()?;
    units.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    Some(units)
}

fn table(took: &Seconds, units: &[Unit], binary: u64) -> String {
    let Seconds { clone, build, demo, rebuild } = took;
    let first = Duration::from_secs_f64(clone + build + demo).as_secs();
    let mut text = format!(
        "\nfrom nothing to the demo's table: {} min {} s\n\n{:<34}{:>8}\n",
        first / 60,
        first % 60,
        "",
        "seconds"
    );
    let rows = [
        ("clone", clone),
        ("download and build", build),
        ("demo", demo),
        ("build after a change of the engine", rebuild),
    ];
    for (name, seconds) in rows {
        text += &format!("{name:<34}{seconds:>8.1}\n");
    }
    text += &format!("\nbinary, stripped: {:.1} MB\n\n", binary as f64 / 1e6);
    text += &format!("{:<34}{:>8}\n", "unit", "seconds");
    for unit in &units[..LISTED.min(units.len())] {
        text += &format!("{:<34}{:>8.1}\n", unit.name, unit.seconds);
    }
    let rest = units.get(LISTED..).unwrap_or_default();
    let seconds: f64 = rest.iter().map(|unit| unit.seconds).sum();
    text + &format!("{:<34}{seconds:>8.1}\n", format!("{} others", rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unit_of_the_report_comes_first() {
        let text = "x\nconst UNIT_DATA = [{\"name\": \"a\", \"target\": \"\", \"duration\": 1.5}, \
                    {\"name\": \"b\", \"target\": \" bin \\\"b\\\"\", \"duration\": 2}];\nconst";
        let units = parse(text).unwrap();
        assert_eq!(units[0], Unit { name: "b bin \"b\"".to_owned(), seconds: 2.0 });
        assert_eq!(units[1], Unit { name: "a".to_owned(), seconds: 1.5 });
        assert!(parse("no report").is_none());
    }

    #[test]
    fn the_table_sums_what_a_newcomer_waits_for() {
        let took = Seconds { clone: 1.0, build: 80.0, demo: 29.0, rebuild: 20.0 };
        let text = table(&took, &[], 11_000_000);
        assert!(text.contains("to the demo's table: 1 min 50 s"), "{text}");
        assert!(text.contains("11.0 MB"), "{text}");
    }
}
