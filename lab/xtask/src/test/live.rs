//! The live tests: real packets in namespaces of their own, so they need what not every machine has.
//!
//! They are the integration tests named `live` or `live_*`. They never skip themselves; whether they can run
//! is decided here, once, so that what did not run is a list that somebody sees.

use std::fs::OpenOptions;
use std::path::Path;
use std::thread;

use anyhow::{Result, bail};

use super::report::Report;
use super::steps::{CHECKED, RELEASED, Scene};
use crate::apt::{self, Package};
use crate::sh::{self, Program};
use crate::tunnels;

/// Live tests beside a program that is no part of Rust, by target.
const PACKAGES: &[(&str, &[Package])] = &[
    ("live_command", &[apt::IPROUTE, apt::PING]),
    ("live_curl", &[apt::CURL]),
    ("live_guest", &[apt::QEMU, apt::BUSYBOX]),
    ("live_guest_vhost", &[apt::QEMU, apt::BUSYBOX]),
    (LINUX, &[apt::QEMU, apt::BUSYBOX]),
    ("live_testpmd", &[apt::TESTPMD]),
    ("live_worker", &[apt::NFT]),
];

/// The tests of the command take about as long as all others.
const OF_THE_COMMAND: &[&str] = &["live_command", "live_curl"];

/// Boots one guest in emulation. The test itself downloads a kernel for it, once.
const LINUX: &str = "live_linux";

/// They boot many guests in emulation, or install all of DPDK: only `--guests` runs them.
const GUESTS: &[&str] = &["live_guest", "live_guest_vhost", "live_testpmd"];

/// Beside the programs of others, which are built for it: only `--all` runs it.
const TUNNELS: &str = "live_tunnels";

/// True when the test target of that name holds live tests.
pub(super) fn is_live(target: &str) -> bool {
    target == "live" || target.starts_with("live_")
}

/// Runs them two at a time, because they wait most of their time; not more, because they share two
/// cores with the kernel's side of the traffic. With `--all` they run as released, otherwise as the
/// other tests, which spares a build.
///
/// # Errors
/// A test fails; or they cannot run here and nobody would read that they did not.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    let mut targets = scene.live_targets();
    if !scene.guests {
        targets.retain(|target| !GUESTS.contains(target));
    }
    if !scene.all {
        targets.retain(|target| *target != TUNNELS);
    }
    let profile = if scene.all { RELEASED } else { CHECKED };
    if let Err(obstacle) = possible() {
        note_names(scene, profile, &targets, report);
        if sh::is_ci() {
            return Err(obstacle);
        }
        report.not_run(obstacle.to_string());
        return Ok(());
    }
    let targets = build(scene, profile, with_packages(targets, report)?, report)?;
    if targets.is_empty() {
        report.not_run("there is no live test whose programs are all here".to_owned());
        return Ok(());
    }
    run_rows(scene, profile, &targets, report)
}

/// Notes the name of every test in `targets`, none of which can run.
fn note_names(scene: &Scene, profile: &str, targets: &[&str], report: &mut Report) {
    for target in targets {
        let listing = self::target(scene, profile, target, "--list");
        // Some need what is missing even to say their names.
        let names = listing.output().map_or_else(|_| vec!["all".to_owned()], |text| listed(&text));
        report.note(format!("did not run: {target}: {}", names.join(", ")));
    }
}

/// Builds `targets`, and the programs that they run beside. Returns those that can run; the others are noted.
fn build<'t>(
    scene: &Scene,
    profile: &str,
    targets: Vec<&'t str>,
    report: &mut Report,
) -> Result<Vec<&'t str>> {
    // Without names cargo would build every test.
    if targets.is_empty() {
        return Ok(targets);
    }
    if targets.contains(&TUNNELS) {
        tunnels::ensure(&scene.workspace)?;
    }
    let build = format!("test --workspace {profile} --no-run{}", chosen(&targets));
    scene.cargo(&build).run()?;
    with_kernel(scene, profile, targets, report)
}

/// Those whose packages are there; the others are noted.
fn with_packages<'t>(targets: Vec<&'t str>, report: &mut Report) -> Result<Vec<&'t str>> {
    let mut present = Vec::new();
    for target in targets {
        let packages = PACKAGES.iter().find(|(name, _)| *name == target);
        match packages.map_or(Ok(()), |(_, packages)| apt::ensure(packages)) {
            Ok(()) => present.push(target),
            Err(obstacle) if sh::is_ci() => return Err(obstacle),
            Err(obstacle) => report.note(format!("the tests `{target}` did not run: {obstacle}")),
        }
    }
    Ok(present)
}

/// Leaves out the guest if its kernel cannot be had, and notes it. As root it lets apt look for it anew.
fn with_kernel<'t>(
    scene: &Scene,
    profile: &str,
    mut targets: Vec<&'t str>,
    report: &mut Report,
) -> Result<Vec<&'t str>> {
    if !targets.contains(&LINUX) {
        return Ok(targets);
    }
    // Before it looks for a test of this name, which it has not, it makes ready.
    let ready = || target(scene, profile, LINUX, "--exact none").output();
    let is_ready = ready().or_else(|error| apt::update().map_err(|_| error).and_then(|()| ready()));
    let Err(error) = is_ready else { return Ok(targets) };
    let obstacle = reason(&format!("{error:#}"));
    if sh::is_ci() {
        bail!("{obstacle}");
    }
    report.note(format!("the tests `{LINUX}` did not run: {obstacle}"));
    targets.retain(|target| *target != LINUX);
    Ok(targets)
}

/// The line in which a live test says why it cannot run; all of `text` if there is none.
fn reason(text: &str) -> String {
    let line = text.lines().find(|line| line.contains("live tests cannot run: "));
    line.unwrap_or(text).trim().to_owned()
}

fn target(scene: &Scene, profile: &str, name: &str, arguments: &str) -> Program {
    scene.cargo(&format!("test --workspace {profile} --test {name} -- {arguments}"))
}

/// Runs the tests of the command beside all others. What the others say follows at the end.
fn run_rows(scene: &Scene, profile: &str, targets: &[&str], report: &mut Report) -> Result<()> {
    let (command, others): (Vec<&str>, Vec<&str>) =
        targets.iter().partition(|target| OF_THE_COMMAND.contains(target));
    let (Some(command), Some(others)) = (test(profile, &command), test(profile, &others)) else {
        return test(profile, targets).map_or(Ok(()), |all| scene.test(&all, report));
    };
    thread::scope(|scope| {
        let others = scope.spawn(|| scene.cargo(&others).output_of_both());
        let result = scene.test(&command, report);
        let Ok(others) = others.join() else { bail!("a thread of the live step ended") };
        let others = others.and_then(|(ended, said)| {
            report.count(said.lines().collect());
            println!("{said}");
            ended
        });
        both(result, others)
    })
}

/// An error with the cause of each that failed.
fn both(one: Result<()>, other: Result<()>) -> Result<()> {
    let causes: Vec<String> =
        [one, other].into_iter().filter_map(|row| Some(format!("{:#}", row.err()?))).collect();
    if causes.is_empty() { Ok(()) } else { bail!("{}", causes.join("; ")) }
}

/// Cargo's arguments that run these targets; `None` if there are none.
fn test(profile: &str, targets: &[&str]) -> Option<String> {
    let chosen = chosen(targets);
    let all = format!("test --workspace {profile} --no-fail-fast{chosen} -- --test-threads=1");
    (!targets.is_empty()).then_some(all)
}

fn chosen(targets: &[&str]) -> String {
    targets.iter().map(|target| format!(" --test {target}")).collect()
}

/// Whether this machine lets us make what the live tests need.
fn possible() -> Result<()> {
    let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    if let Err(error) = tun {
        bail!("/dev/net/tun cannot be opened ({error}): `modprobe tun` as root provides it");
    }
    let arguments: &[&str] =
        if sh::is_root() { &["--net"] } else { &["--user", "--map-root-user", "--net"] };
    let probe = Program::new(Path::new("/"), "unshare", [arguments, &["true"]].concat());
    if let Err(error) = probe.output() {
        bail!("no network namespace can be made ({error}): run as root, or allow user namespaces");
    }
    Ok(())
}

/// The names in what `cargo test -- --list` prints.
fn listed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_target_is_not_every_target() {
        assert_eq!(test("--release", &[]), None);
        let one = "test --workspace --release --no-fail-fast --test live -- --test-threads=1";
        assert_eq!(test("--release", &["live"]).as_deref(), Some(one));
    }

    #[test]
    fn rows_that_fail_are_both_named() {
        let failed = |why: &str| Err(anyhow::anyhow!("`{why}` failed"));
        assert!(both(Ok(()), Ok(())).is_ok());
        assert_eq!(both(Ok(()), failed("b")).unwrap_err().to_string(), "`b` failed");
        assert_eq!(
            both(failed("a"), failed("b")).unwrap_err().to_string(),
            "`a` failed; `b` failed"
        );
    }

    #[test]
    fn the_reason_is_the_line_of_the_test() {
        let text =
            "`cargo test` failed: Running live_linux\nlive tests cannot run: no kernel\nerror: 1";
        assert_eq!(reason(text), "live tests cannot run: no kernel");
        assert_eq!(reason("apt is not there"), "apt is not there");
    }

    #[test]
    fn the_list_is_read() {
        let text = "bulk::one_flow: test\nrequest_response: test\n\n2 tests, 0 benchmarks\n";
        assert_eq!(listed(text), ["bulk::one_flow", "request_response"]);
    }
}
