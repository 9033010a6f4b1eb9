//! The steps as a table, and the function of each.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::live::is_live;
use super::options::Options;
use super::report::Report;
use super::tally::Tally;
use super::tools::needs_tool;
use super::{c, clusters, dist, dpdk, fuzz, live, msrv, no_std, python, tools};
use crate::sh::{self, CHECKED, Program};
use crate::workspace::Workspace;
use crate::{api, apt, deny, layers, package, quotes, report, rfc};

/// A step of `cargo xtask test`.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) run: fn(&Scene, &mut Report) -> Result<()>,
    pub(super) when: When,
}

/// The runs that include a step. `--all` includes every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Every `cargo xtask test`: lints, and the tests of each documented promise.
    Always,
    /// Steps that CI adds (`--ci`): documentation, bindings and packages, and steps that need third-party
    /// programs.
    Ci,
    /// Only `--all`: the tests again in release, on other processors, or for longer.
    All,
}

const fn step(
    when: When,
    name: &'static str,
    about: &'static str,
    run: fn(&Scene, &mut Report) -> Result<()>,
) -> Step {
    Step { name, about, run, when }
}

/// All steps, in the order they run.
pub(super) const STEPS: &[Step] = &[
    step(When::Always, "fmt", "the layout of the source", fmt),
    step(When::Always, "layers", "who imports whom, where `unsafe` is, what git keeps", layers),
    step(When::Always, "rfc", "each requirement of an RFC that is done has a test", rfc),
    step(When::Always, "quotes", "the code that README.md quotes", quoted),
    step(When::Always, "build", "all that the steps below run; lints, warnings are errors", build),
    step(
        When::Always,
        "test",
        "unit, integration and documentation tests, with debug assertions",
        test,
    ),
    step(When::Always, "live", "real traffic in private namespaces", live::run),
    step(When::Ci, "lints", "examples and benchmarks, too; warnings are errors", lints),
    step(When::Ci, "docs", "documentation, warnings are errors", docs),
    step(When::Ci, "api", "the public interfaces against the kept listings", api),
    step(When::Ci, "parquet", "rxo analyze --parquet, which the default build leaves out", parquet),
    step(
        When::Ci,
        "no-std",
        "the pure crates without the standard library, the command with musl",
        no_std::run,
    ),
    step(
        When::Ci,
        "tools",
        "what others read of ours: the HTML report in a browser, metrics and rules in promtool, captures in tshark",
        tools::run,
    ),
    step(
        When::Ci,
        "c",
        "librxo in programs in C: warnings, valgrind, sanitizers, CMake, ABI",
        c::run,
    ),
    step(When::Ci, "go", "librxo in a program in Go", c::run_go),
    step(
        When::Ci,
        "python",
        "the wheel in a fresh virtual environment, and its tests",
        python::run,
    ),
    step(
        When::Ci,
        "report",
        "the report of experiments, and that its pages in docs/ are up to date",
        reported,
    ),
    step(
        When::Ci,
        "package",
        "the crates as packages: built alone, their examples, a new project",
        package,
    ),
    step(When::Ci, "guest", "a real Linux guest, in emulation, behind rxo", live::run_guest),
    step(When::Ci, "fuzz", "every fuzz target from the kept corpus, two at a time", fuzz::run),
    step(When::Ci, "lab", "what the papers' experiments count, against the kept results", lab),
    step(When::Ci, "deny", "licences, advisories and sources of the dependencies", deny),
    step(When::All, "test-release", "integration tests, as released", test_release),
    step(
        When::All,
        "foreign",
        "tests on a big-endian and on a 32-bit processor",
        no_std::run_foreign,
    ),
    step(
        When::All,
        "msrv",
        "the pure crates with the oldest compiler that they promise",
        msrv::run,
    ),
    step(
        When::All,
        "patched",
        "programs of others with rxo inside, beside the same programs as published",
        live::run_patched,
    ),
    step(When::All, "dpdk", "mbufs through librxo, between two captures", dpdk::run),
    step(
        When::All,
        "bench-once",
        "every benchmark once, as released; counts of instructions",
        bench_once,
    ),
    step(
        When::All,
        "dist",
        "what users get: made twice, the same; installed, run, upgraded and removed in a clean root",
        dist::run,
    ),
    step(When::All, "clusters", "the Python package on Ray, Dask and Spark", clusters::run),
];

/// The package whose tests include the benchmarks.
const BENCH: &str = "rxo-bench";

/// State that all steps share.
pub(super) struct Scene {
    pub(super) workspace: Workspace,
    /// `true` with `--all`: steps do everything that they can. Otherwise they do what is enough to check a
    /// change.
    pub(super) all: bool,
    /// `true` with `--guests` or `--all`: tests that boot guests run too.
    pub(super) guests: bool,
}

/// The release profile with line tables, by which experiments attribute instructions to source lines.
pub(super) const RELEASED: &str = "--profile lines";

impl Scene {
    /// Reads the workspace and the options.
    pub(super) fn set(options: &Options) -> Result<Self> {
        let Options { all, guests, .. } = *options;
        Ok(Self { workspace: Workspace::load()?, all, guests: guests || all })
    }

    /// Returns cargo in the workspace's root. Under CI it is not incremental, because a machine that builds
    /// once gains nothing from that.
    pub(super) fn cargo(&self, arguments: &str) -> Program {
        let program = Program::cargo(&self.workspace.root, arguments);
        if !sh::is_ci() {
            return program;
        }
        program.env("CARGO_INCREMENTAL", "0").env("PROPTEST_RNG_SEED", &sh::CI_SEED.to_string())
    }

    /// Returns cargo with `command` for the targets `what`, in the test profile and with lints. Every step
    /// with this profile uses this function: other settings would cause a complete rebuild.
    pub(super) fn checked(&self, command: &str, what: &str) -> Program {
        self.cargo(&format!("{command} {CHECKED} {what}")).linted()
    }

    /// Runs `program`, and adds the tests that it reports to `report`.
    pub(super) fn test(&self, program: Program, report: &mut Report) -> Result<()> {
        let mut tally = Tally::default();
        let result = program.run_reading(|line| tally.read(line));
        report.count(tally);
        result
    }

    /// Returns the names of the integration tests that need namespaces and TUN.
    pub(super) fn live_targets(&self) -> Vec<&str> {
        let all = self.workspace.packages.iter().flat_map(|package| &package.tests);
        let live: BTreeSet<&str> = all.map(String::as_str).filter(|name| is_live(name)).collect();
        live.into_iter().collect()
    }

    /// Returns cargo's arguments for the unit tests and all integration tests except live tests and those
    /// that need a program. They list names, because cargo cannot exclude test targets.
    fn chosen_targets(&self) -> String {
        self.targets(is_chosen)
    }

    /// Returns cargo's arguments for the unit tests and for the integration tests whose name satisfies
    /// `is_chosen`.
    fn targets(&self, is_chosen: impl Fn(&str) -> bool) -> String {
        format!("--workspace --lib --bins{}", self.integration(is_chosen))
    }

    /// Returns cargo's arguments for the integration tests whose name satisfies `is_chosen`.
    fn integration(&self, is_chosen: impl Fn(&str) -> bool) -> String {
        let names = self.workspace.packages.iter().flat_map(|package| &package.tests);
        let chosen: BTreeSet<&str> =
            names.map(String::as_str).filter(|name| is_chosen(name)).collect();
        chosen.into_iter().map(|name| format!(" --test {name}")).collect()
    }
}

/// Returns `true` for a test target that is no live test and needs no program.
fn is_chosen(test: &str) -> bool {
    !is_live(test) && !needs_tool(test)
}

fn fmt(scene: &Scene, _: &mut Report) -> Result<()> {
    scene.cargo("fmt --all --check").run()
}

fn layers(_: &Scene, _: &mut Report) -> Result<()> {
    layers::run()
}

fn rfc(_: &Scene, _: &mut Report) -> Result<()> {
    rfc::check_all()
}

fn quoted(_: &Scene, _: &mut Report) -> Result<()> {
    quotes::check()
}

/// Runs the lints with `check`, not `build`: lints need no linked examples.
fn lints(scene: &Scene, _: &mut Report) -> Result<()> {
    let parquet = "--features rxo-cli/parquet";
    scene.checked("check --quiet", &format!("--workspace --all-targets {parquet}")).run()
}

fn reported(scene: &Scene, report: &mut Report) -> Result<()> {
    let mut tally = Tally::default();
    let result = report::check(&scene.workspace, |line| tally += Tally::of_pytest(line));
    report.count(tally);
    result
}

/// Tests the command with `parquet`, the only feature that changes its behaviour.
fn parquet(scene: &Scene, report: &mut Report) -> Result<()> {
    let what = "--workspace --test report --features rxo-cli/parquet";
    scene.test(scene.checked("test", what), report)
}

/// Builds the documentation, binaries first: one has the facade's name, and the facade's pages must overwrite
/// its own.
fn docs(scene: &Scene, _: &mut Report) -> Result<()> {
    for what in ["-p rxo-lab -p xtask --bins", "--workspace --lib"] {
        scene
            .checked("doc --quiet", &format!("{what} --no-deps --document-private-items"))
            .env("RUSTDOCFLAGS", "-D warnings")
            .run()?;
    }
    Ok(())
}

fn api(_: &Scene, _: &mut Report) -> Result<()> {
    api::check()
}

fn package(scene: &Scene, _: &mut Report) -> Result<()> {
    package::run(scene.all)
}

/// Builds all tests at once: separate builds for each step would leave cores idle at the end of each. With
/// `--all` the live tests are built later, in release.
fn build(scene: &Scene, _: &mut Report) -> Result<()> {
    let is_built = |name: &str| {
        if is_live(name) { !scene.all && live::is_short(name) } else { !needs_tool(name) }
    };
    scene.checked("test --no-run", &scene.targets(is_built)).run()
}

/// Runs the tests with debug assertions and overflow checks, to detect internal errors. They also replay the
/// kept corpus of the fuzz targets.
fn test(scene: &Scene, report: &mut Report) -> Result<()> {
    let targets = scene.chosen_targets();
    scene.test(scene.checked("test --no-fail-fast", &targets), report)?;
    scene.test(scene.checked("test --no-fail-fast", "--workspace --doc"), report)
}

/// Runs the integration tests in release and links the examples. Unit tests are left out: optimising each
/// crate again for them would take longer than running everything.
fn test_release(scene: &Scene, report: &mut Report) -> Result<()> {
    let tests = scene.integration(is_chosen);
    let features = "--features rxo-cli/parquet";
    let arguments =
        format!("test {RELEASED} --no-fail-fast --workspace{tests} --examples {features}");
    scene.test(scene.cargo(&arguments), report)
}

fn bench_once(scene: &Scene, report: &mut Report) -> Result<()> {
    let dpdk =
        if apt::DPDK.is_there() { format!("--features {BENCH}/dpdk") } else { String::new() };
    let bench = format!("{RELEASED} -p {BENCH} -p rxo-lab {dpdk}");
    scene.test(scene.cargo(&format!("test {RELEASED} -p {BENCH} --lib {dpdk}")), report)?;
    if !sh::has_program("valgrind") {
        report.note("instructions were not counted: valgrind is not installed".to_owned());
        return Ok(());
    }
    scene.cargo(&format!("build {bench} --bin rxo-lab --quiet")).run()?;
    let Workspace { root, target, .. } = &scene.workspace;
    let program = target.join("lines/rxo-lab");
    Program::new(root, &program.to_string_lossy(), ["bench", "instructions"]).run()
}

/// Repeats what the papers' experiments count or have on virtual time, and compares it with the kept results:
/// they are the same on a busy machine.
fn lab(scene: &Scene, report: &mut Report) -> Result<()> {
    if !sh::has_program("valgrind") {
        report.not_run("valgrind is not installed, which counts instructions".to_owned());
        return Ok(());
    }
    scene.checked("build --quiet", "-p rxo-lab --bin rxo-lab").run()?;
    let Workspace { root, target, .. } = &scene.workspace;
    let [program, out] = ["ci/rxo-lab", "lab"].map(|name| target.join(name).display().to_string());
    let lab = |arguments: &[&str]| Program::new(root, &program, arguments);
    lab(&["all", "--counted", "--out", &out]).output()?;
    let results = format!("{out}/results.json");
    let checked = lab(&["check", &results, COUNTED]).run();
    checked.with_context(|| {
        format!(
            "{COUNTED} is stale; if the change is meant, renew it: {program} check {results} {COUNTED} --renew"
        )
    })
}

/// The kept results, from the root of the workspace.
const COUNTED: &str = "lab/report/expected/counted.json";

fn deny(_: &Scene, report: &mut Report) -> Result<()> {
    if !deny::is_installed() {
        report.not_run(
            "cargo-deny is not installed; `cargo install --locked cargo-deny` adds it".to_owned(),
        );
        return Ok(());
    }
    if let Some(unchecked) = deny::check()? {
        report.note(unchecked);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::workspace::Package;

    fn package(name: &str, tests: &[&str]) -> Package {
        let tests = tests.iter().map(|&test| test.to_owned()).collect();
        Package { name: name.to_owned(), tests, ..Package::default() }
    }

    #[test]
    fn live_tests_are_kept_apart() {
        let packages = vec![
            package("a", &["live_bulk", "promises"]),
            package("b", &["speed", "live", "browser"]),
        ];
        let (root, target) = (PathBuf::new(), PathBuf::new());
        let scene =
            Scene { workspace: Workspace { root, target, packages }, all: false, guests: false };
        assert_eq!(scene.live_targets(), ["live", "live_bulk"]);
        let unit = "--workspace --lib --bins";
        assert_eq!(scene.chosen_targets(), format!("{unit} --test promises --test speed"));
        assert_eq!(
            scene.targets(|name| !is_live(name)),
            format!("{unit} --test browser --test promises --test speed")
        );
    }

    #[test]
    fn the_kept_corpus_is_replayed_in_every_run() {
        let workspace = Workspace::load().unwrap();
        let fuzz = workspace.packages.iter().find(|package| package.name == "rxo-fuzz").unwrap();
        assert!(fuzz.tests.contains(&"corpus".to_owned()), "{:?}", fuzz.tests);
        assert!(is_chosen("corpus"));
        assert!(STEPS.iter().any(|step| step.name == "test" && step.when == When::Always));
    }
}
