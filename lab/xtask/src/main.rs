//! `cargo xtask <command>`: the project's own build, test and release commands.
//!
//! A binary instead of shell scripts, so that the commands are typed, tested and the same on every machine
//! with Rust. It imports no crate of the workspace, so that it still builds if they do not.

mod api;
mod apt;
mod bench;
mod capi;
mod comments;
mod deny;
mod dist;
mod door;
mod files;
mod lab;
mod layers;
mod package;
mod patched;
mod quotes;
mod readmes;
mod report;
mod rfc;
mod semver;
mod sh;
mod target;
mod test;
mod tunnels;
mod venv;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  test [--only STEP,…] [--list]   lints and every promise, in order; stops at the first failure
  test --ci                       what CI adds: documentation, bindings, packages, fuzzing
  test --all                      everything, also as released, on other processors, with guests of others
  door                            clones, builds and runs the demo as a newcomer does, and prints the seconds
  test --guests --only live       the live tests, with all those of guests under QEMU
  rfc [--json|--summary]          what the RFCs ask of the endpoint, and the tests that hold it
  layers                          who imports whom, and where `unsafe` is, against the table
  bench acks                      ACKs expanded and split, in release
  bench analyze [--json]          reading captures beside tshark, on captures it makes
  bench engine [ARGUMENT …]       the engine beside its rivals, in release (`bench engine --help`)
  bench bindings                  librxo and the Python package beside Rust, in release
  bench guests                    Linux guests behind rxo and its rivals: instructions, processor time
  bench instructions [--update]   the engine's instruction counts against the kept ones
  package [--publish-order]       packs the library crates, and builds each from its package alone; or their order, and a dry run
  api                             keeps the public interfaces of the library crates anew, in docs/api
  bench tunnel                    WireGuard tunnels: rxo-tunnel beside those of others, which it installs
  dist [--architecture NAME]      what users get: a static program, a Debian package, an archive, a list of parts
  dist --wheels KIND              wheels of the Python package (manylinux, musllinux, all), and its sources
  soak [--minutes N] [--json]     rxo under everything at once: bytes, counters, memory, descriptors (20 minutes)
  comments --seed N [--count 40]  doc comments of crates/ drawn at random, to be rated; `--openings` counts first words
  capi --prefix DIR               builds librxo and librxo-trace and installs them, below DESTDIR if set
  report [RESULTS] --out DIR      claims and figures of `rxo-lab all` as HTML; `--docs` writes the pages of docs/
  quotes                          writes the code that README.md quotes, and the READMEs of the crates, anew
  semver --since REV              what breaks programs written for that revision's libraries (cargo-semver-checks)
  deny                            licences, advisories and sources of the dependencies (cargo-deny)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<ExitCode> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(UsageError(format!("no command\n{USAGE}")).into());
    };
    match command.as_str() {
        "test" => return test::run(rest),
        "bench" => return bench::run(rest),
        "soak" => return lab::run("", "soak", rest),
        "layers" => layers::run()?,
        "api" => api::write()?,
        "package" => package::command(rest)?,
        "capi" => capi::run(rest)?,
        "comments" => comments::run(rest)?,
        "rfc" => rfc::run(rest)?,
        "deny" => deny::run()?,
        "dist" => dist::run(rest)?,
        "door" => door::run(rest)?,
        "report" => return report::run(rest),
        "semver" => semver::run(rest)?,
        "quotes" => quotes::write()?,
        "help" | "--help" | "-h" => print!("{USAGE}"),
        other => bail!(UsageError(format!("unknown command {other:?}\n{USAGE}"))),
    }
    Ok(ExitCode::SUCCESS)
}

/// An error in the arguments. Its exit code is 2, as for every command of the project.
#[derive(Debug)]
struct UsageError(String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
