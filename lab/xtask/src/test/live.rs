//! Runs the live tests: they send real packets in network namespaces, which not every machine permits.
//!
//! They are the integration tests named `live` or `live_*`. They never skip themselves; this module decides
//! once which can run, and lists those that did not.

mod queue;

use std::fs::OpenOptions;
use std::path::Path;
use std::thread;

use anyhow::{Result, bail};

use self::queue::{Listed, Target, Test};
use super::report::Report;
use super::steps::{RELEASED, Scene};
use super::tally::Tally;
use super::times::Times;
use crate::apt::{self, Package};
use crate::patched::{self, Built};
use crate::sh::{self, CHECKED, Program};
use crate::tunnels;

/// Packages that the live tests of a target need, by target.
const PACKAGES: &[(&str, &[Package])] = &[
    ("live_command", &[apt::IPROUTE, apt::PING, apt::NFT]),
    ("live_curl", &[apt::CURL]),
    ("live_guest", &[apt::QEMU, apt::BUSYBOX]),
    ("live_guest_vhost", &[apt::QEMU, apt::BUSYBOX]),
    ("live_lab_guest", &[apt::QEMU, apt::BUSYBOX]),
    (LINUX, &[apt::QEMU, apt::BUSYBOX]),
    ("live_testpmd", &[apt::TESTPMD]),
    (TUNNELS, &[apt::WIREGUARD_TOOLS]),
    ("live_wg", &[apt::IPROUTE, apt::NFT, apt::WIREGUARD_TOOLS]),
    ("live_worker", &[apt::NFT]),
];

/// Additional packages for the long tests of a target.
const LONG_PACKAGES: &[(&str, &[Package])] = &[
    ("live_command", &[apt::DNSMASQ, apt::DHCPCD, apt::UDHCPC, apt::SYSTEMD]),
    ("live_lab", &[apt::VALGRIND]),
];

/// A test that boots one guest in emulation, and downloads a kernel for it once.
const LINUX: &str = "live_linux";

/// Tests that boot many guests in emulation, or install all of DPDK: only `--guests` runs them.
const GUESTS: &[&str] = &["live_guest", "live_guest_vhost", "live_lab_guest", "live_testpmd"];

/// A test that runs with other tunnel programs, which are built for it: only `--all` runs it.
const TUNNELS: &str = "live_tunnels";

/// A test of programs of others with rxo inside, beside the same programs as published, in a step of its own.
const PATCHED: &str = "live_patched";

/// Returns `true` if the test target of that name has live tests.
pub(super) fn is_live(target: &str) -> bool {
    target == "live" || target.starts_with("live_")
}

/// Runs the live tests in one queue, several at a time. With `--all` they are built in release and the long
/// ones run too; otherwise they share the build of the other tests.
///
/// # Errors
/// A test fails; or, under `CI=true`, the tests cannot run.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    let is_chosen = |target: &&str| match *target {
        LINUX | PATCHED => false,
        TUNNELS => scene.all,
        target => scene.guests || !GUESTS.contains(&target),
    };
    run_targets(scene, scene.live_targets().into_iter().filter(is_chosen).collect(), report)
}

/// Runs the test that boots one guest.
///
/// # Errors
/// See [`run`].
pub(super) fn run_guest(scene: &Scene, report: &mut Report) -> Result<()> {
    run_targets(scene, vec![LINUX], report)
}

/// Runs the test of programs of others with rxo inside, and measures them beside the same programs as published.
///
/// # Errors
/// See [`run`]. Also if a program cannot be measured.
pub(super) fn run_patched(scene: &Scene, report: &mut Report) -> Result<()> {
    run_targets(scene, vec![PATCHED], report)?;
    if possible().is_err() {
        return Ok(());
    }
    let Built { stock, patched } = Built::below(&scene.workspace);
    let what = "run --quiet --release -p rxo-peers --example patched --";
    let folders = format!("{} {} {MEASURED}", stock.display(), patched.display());
    scene.cargo(&format!("{what} {folders}")).run_reading(|line| report.note(line.to_owned()))
}

/// The seconds and the rounds in which the patched programs are measured.
const MEASURED: &str = "2 5";

/// Returns `true` if every `cargo xtask test` runs the live tests of this target.
pub(super) fn is_short(target: &str) -> bool {
    target != LINUX && target != TUNNELS && target != PATCHED && !GUESTS.contains(&target)
}

fn run_targets(scene: &Scene, targets: Vec<&str>, report: &mut Report) -> Result<()> {
    let profile = if scene.all { RELEASED } else { CHECKED };
    if let Err(obstacle) = possible() {
        note_names(scene, profile, &targets, report);
        if sh::is_ci() {
            return Err(obstacle);
        }
        report.not_run(obstacle.to_string());
        return Ok(());
    }
    let targets = build(scene, profile, with_packages(scene, targets, report)?, report)?;
    if targets.is_empty() {
        report.not_run("there is no live test whose programs are all here".to_owned());
        return Ok(());
    }
    let what = format!("--workspace{} --message-format=json", chosen(&targets));
    let messages = cargo_test(scene, profile, "--no-run", &what).output()?;
    run_queue(scene, &Target::all(&messages)?, &targets, report)
}

/// Adds a note with the name of every test in `targets`, none of which can run here.
fn note_names(scene: &Scene, profile: &str, targets: &[&str], report: &mut Report) {
    for target in targets {
        let listing = self::target(scene, profile, target, "--list");
        // Some test programs cannot even list their tests on such a machine.
        let names =
            listing.output().map_or_else(|_| vec!["all".to_owned()], |text| queue::listed(&text));
        report.note(format!("did not run: {target}: {}", names.join(", ")));
    }
}

/// Builds `targets` and the programs that they need. Returns the targets that can run, and notes the others.
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
    if targets.contains(&PATCHED) {
        patched::ensure(&scene.workspace)?;
    }
    let what = format!("--workspace{}", chosen(&targets));
    cargo_test(scene, profile, "--no-run", &what).run()?;
    with_kernel(scene, profile, targets, report)
}

/// Returns the targets whose packages are installed, and notes the others.
fn with_packages<'t>(
    scene: &Scene,
    targets: Vec<&'t str>,
    report: &mut Report,
) -> Result<Vec<&'t str>> {
    let mut present = Vec::new();
    let long = if scene.all { LONG_PACKAGES } else { &[] };
    for target in targets {
        let rows = PACKAGES.iter().chain(long).filter(|(name, _)| *name == target);
        let packages: Vec<Package> = rows.flat_map(|(_, packages)| *packages).copied().collect();
        match apt::ensure(&packages) {
            Ok(()) => present.push(target),
            Err(obstacle) if sh::is_ci() => return Err(obstacle),
            Err(obstacle) => report.note(format!("the tests `{target}` did not run: {obstacle}")),
        }
    }
    Ok(present)
}

/// Removes the guest's target if its kernel is not available, and notes it. As root it updates apt's list of
/// packages and tries again.
fn with_kernel<'t>(
    scene: &Scene,
    profile: &str,
    mut targets: Vec<&'t str>,
    report: &mut Report,
) -> Result<Vec<&'t str>> {
    if !targets.contains(&LINUX) {
        return Ok(targets);
    }
    // The test program prepares its kernel before it searches for a test of this name, which does not exist.
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

/// Returns the line in which a live test gives its reason not to run; all of `text` if there is none.
fn reason(text: &str) -> String {
    let line = text.lines().find(|line| line.contains("live tests cannot run: "));
    line.unwrap_or(text).trim().to_owned()
}

fn target(scene: &Scene, profile: &str, name: &str, arguments: &str) -> Program {
    cargo_test(scene, profile, "", &format!("--workspace --test {name} -- {arguments}"))
}

/// Returns `cargo test` in `profile`, with the settings of that profile's builds.
fn cargo_test(scene: &Scene, profile: &str, flags: &str, what: &str) -> Program {
    match profile {
        CHECKED => scene.checked(&format!("test {flags}"), what),
        _ => scene.cargo(&format!("test {profile} {flags} {what}")),
    }
}

/// Runs the tests of the `built` targets that are `wanted`. Long tests and those that boot many guests run
/// last and one at a time, because each uses all cores, and some measure.
fn run_queue(scene: &Scene, built: &[Target], wanted: &[&str], report: &mut Report) -> Result<()> {
    if let Some(lost) = wanted.iter().find(|name| built.iter().all(|target| target.name != **name))
    {
        bail!("the tests `{lost}` were not built");
    }
    let (mut beside, mut alone, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for target in built.iter().filter(|target| wanted.contains(&target.name.as_str())) {
        let Listed { short, long } = target.tests()?;
        if short.is_empty() && long.is_empty() {
            bail!("`{}` lists no test", target.name);
        }
        let boots_many = GUESTS.contains(&target.name.as_str());
        if boots_many { &mut alone } else { &mut beside }.extend(short);
        if scene.all { &mut alone } else { &mut left_out }.extend(long);
    }
    let count = beside.len() + alone.len();
    let mut times = Times::of_live_tests(&scene.workspace.target);
    let mut failed = queue::run(beside, at_once(), &mut times);
    failed.extend(queue::run(alone, 1, &mut times));
    if let Err(error) = times.write() {
        report.note(format!("the seconds of the live tests were not kept: {error:#}"));
    }
    let passed = (count - failed.len()) as u64;
    report.count(Tally { passed, failed: failed.len() as u64, ignored: 0 });
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(Test::full_name).collect();
        let (count, names) = (names.len(), names.join(", "));
        report.note(format!("{count} long tests did not run, which --all runs: {names}"));
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

fn at_once() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    AT_ONCE_ON_A_CORE * cores
}

/// Live tests that run at a time for each core. They mostly wait, so that one would leave the core idle.
const AT_ONCE_ON_A_CORE: usize = 3;

fn chosen(targets: &[&str]) -> String {
    targets.iter().map(|target| format!(" --test {target}")).collect()
}

/// Checks that this machine permits the namespaces and devices of live tests.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_line_of_the_test() {
        let text =
            "`cargo test` failed: Running live_linux\nlive tests cannot run: no kernel\nerror: 1";
        assert_eq!(reason(text), "live tests cannot run: no kernel");
        assert_eq!(reason("apt is not there"), "apt is not there");
    }
}
