//! Tests the release packages: installs, runs, upgrades and removes them in a clean root, and checks that a
//! second build has the same bytes.
//!
//! * `twice`: the second build, in other folders and with another `CARGO_HOME`.
//! * `root`: a folder that serves as the root of a system, with a shell and dpkg's database.
//! * `look`: checks of the files by shells, man, lintian and a schema.
//! * `emulated`: the wheel for another processor, in that processor's Python.

mod emulated;
mod look;
mod root;
mod twice;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::root::Root;
use super::python;
use super::report::Report;
use super::steps::Scene;
use crate::dist::{self, Architecture, Made, Package, Place, SETTINGS};
use crate::sh::{self, Program};
use crate::venv::Venv;
use crate::{apt, target};

/// Makes all packages twice, compares them, and tests the package for this machine's architecture.
///
/// # Errors
/// A package cannot be made, differs between the builds, or fails its test.
pub(super) fn run(scene: &Scene, report: &mut Report) -> Result<()> {
    apt::ensure(&[apt::DPKG, apt::BUSYBOX])?;
    let place = Place::of(&scene.workspace)?;
    let here = Architecture::here()?;
    let made = dist::make(&place, &[here])?;
    look::at_files(&place, &made, report)?;
    let package = dist::package(&place, here)?;
    let first = place.folder.join(package.file_name());
    if sh::is_root() {
        in_a_clean_root(&place, &package, &first)?;
        carries(&place, here)?;
    } else {
        report.note("the package was neither installed nor used: that needs root".to_owned());
    }
    twice::compare(&place, here, &made)?;
    wheels(&place, here, report)?;
    foreign(&place, here, report)
}

/// Makes all wheels, and uses those for glibc without a compiler: this machine's, and the other under emulation.
fn wheels(place: &Place, here: &Architecture, report: &mut Report) -> Result<()> {
    let kinds: Vec<_> = dist::wheels::KINDS.iter().collect();
    let architectures: Vec<_> = dist::ARCHITECTURES.iter().collect();
    let (made, not_run) = dist::wheels::make(place, &kinds, &architectures)?;
    not_run.into_iter().for_each(|wheel| report.note(wheel));
    for one in made.iter().filter(|one| one.name.contains("manylinux")) {
        let wheel = dist::wheels::folder(place).join(&one.name);
        let is_for = |architecture: &&Architecture| one.name.contains(architecture.name);
        let architecture = architectures.iter().copied().find(is_for).context("no such wheel")?;
        if architecture == here {
            let folder = place.target.join("dist-fresh");
            let fresh = Venv::create(folder, &place.root.join("py"), &["--clear"])?;
            python::installs(&fresh, &wheel.to_string_lossy())?;
        } else {
            emulated::run(place, architecture, &wheel, report)?;
        }
    }
    Ok(())
}

/// Installs, runs, upgrades, removes and purges the package. Afterwards the root must be as before.
fn in_a_clean_root(place: &Place, package: &Package, first: &std::path::Path) -> Result<()> {
    let root = Root::make(place)?;
    let before = root.tree()?;
    root.dpkg(&["--install", &first.to_string_lossy()])?;
    root.has(package)?;
    root.says(&["daemon-reload"])?;
    runs(&root, &place.version)?;

    let settings = "RXO_OPTIONS=--hold auto\n";
    fs::write(root.path(SETTINGS), settings)?;
    let next = newer(package);
    let second = next.pack(place, &place.target.join("dist-root"))?;
    root.dpkg(&["--force-confold", "--install", &second.to_string_lossy()])?;
    root.says(&["daemon-reload"])?;
    ensure!(fs::read_to_string(root.path(SETTINGS))? == settings, "changed settings were not kept");
    let offered = root.path(format!("{SETTINGS}.dpkg-dist"));
    ensure!(offered.is_file(), "the new settings are not offered as {}", offered.display());
    let (gone, new) = (root.path(DROPPED), root.path(ADDED));
    ensure!(!gone.exists() && new.exists(), "the upgrade left {DROPPED}, or brought no {ADDED}");
    runs(&root, &place.version)?;

    root.dpkg(&["--remove", "rxo"])?;
    root.says(&["stop rxo@*.service", "daemon-reload"])?;
    ensure!(!root.path("usr/bin/rxo").exists(), "the program is still there after --remove");
    ensure!(root.path(SETTINGS).exists(), "--remove took the settings");
    root.dpkg(&["--purge", "rxo"])?;
    root.says(&[])?;
    let after = root.tree()?;
    let differs = |from: &[String], to: &[String]| -> Vec<String> {
        from.iter().filter(|line| !to.contains(line)).cloned().collect()
    };
    ensure!(
        before == after,
        "the root is not as before: lacks {:?}, has {:?}",
        differs(&before, &after),
        differs(&after, &before)
    );
    root.remove()
}

/// A file that only the older package has; [`ADDED`] is only in the newer one.
const DROPPED: &str = "usr/share/doc/rxo/README.md.gz";
const ADDED: &str = "usr/share/doc/rxo/NEWS.gz";

/// Returns a package with a higher version, other default settings, and other files.
fn newer(package: &Package) -> Package {
    let mut next = package.clone();
    next.version += ".1";
    for file in &mut next.files {
        if file.path == SETTINGS {
            file.content.extend_from_slice(b"# Changed.\n");
        }
        if file.path == DROPPED {
            file.path = ADDED.to_owned();
        }
    }
    next
}

/// Runs the program in `root`, where there is no library: it prints its version, coalesces a capture and
/// restores it.
fn runs(root: &Root, version: &str) -> Result<()> {
    let said = root.rxo(&["--version"])?;
    ensure!(said.starts_with(&format!("rxo {version}")), "rxo --version says {said:?}");
    let capture = capture();
    fs::write(root.path("tmp/in.pcap"), &capture)?;
    let said = root.rxo(&["coalesce", "/tmp/in.pcap", "/tmp/out.pcapng"])?;
    let fewer = fs::metadata(root.path("tmp/out.pcapng")).context(said)?.len();
    ensure!(fewer < capture.len() as u64, "nothing was coalesced: {fewer} bytes");
    root.rxo(&["expand", "/tmp/out.pcapng", "/tmp/back.pcap"])?;
    ensure!(fs::read(root.path("tmp/back.pcap"))? == capture, "the capture is not restored");
    for name in ["in.pcap", "out.pcapng", "back.pcap"] {
        fs::remove_file(root.path("tmp").join(name))?;
    }
    Ok(())
}

/// Runs the demo in a private network: the program carries traffic through packet sockets and a TAP, and
/// every byte is checked.
fn carries(place: &Place, here: &'static Architecture) -> Result<()> {
    let program = dist::program(place, here).to_string_lossy().into_owned();
    let demo = ["demo", "--rounds", "1", "--seconds", "200ms", "--json"];
    let found: Value = serde_json::from_str(&Program::new(&place.root, &program, demo).output()?)?;
    let rows = found["rows"].as_array().context("the demo has no rows")?;
    let wrong = rows.iter().find(|row| row["hash_ok"] != true);
    ensure!(rows.len() > 3 && wrong.is_none(), "the demo of the packed program: {wrong:?}");
    Ok(())
}

/// Returns a capture of twenty segments of one TCP stream over raw IPv4, with valid checksums.
fn capture() -> Vec<u8> {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // Magic, version 2.4, time zone, accuracy, longest packet, link type: IPv4.
    let mut capture = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 228]);
    for number in 0..20 {
        let packet = segment(number);
        capture.extend(words(&[1, number, packet.len() as u32, packet.len() as u32]));
        capture.extend(packet);
    }
    capture
}

fn segment(number: u32) -> Vec<u8> {
    const PAYLOAD: u32 = 1_000;
    let mut packet = vec![0; 40 + PAYLOAD as usize];
    packet[0] = 0x45;
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[4..6].copy_from_slice(&(number as u16).to_be_bytes());
    (packet[6], packet[8], packet[9]) = (0x40, 64, 6);
    packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    packet[20..24].copy_from_slice(&[0, 80, 4, 0]);
    packet[24..28].copy_from_slice(&(1 + number * PAYLOAD).to_be_bytes());
    (packet[32], packet[33], packet[34]) = (0x50, 0x10, 0xff);
    packet[40..].fill(number as u8);
    let sum = checksum(&packet[..20], 0);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let pseudo: u32 = checksum_words(&packet[12..20]) + 6 + u32::from(length - 20);
    let sum = checksum(&packet[20..], pseudo);
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn checksum_words(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum()
}

/// Returns the internet checksum of `bytes` (RFC 1071), added to the partial sum `from`.
fn checksum(bytes: &[u8], from: u32) -> u16 {
    let sum = checksum_words(bytes) + from;
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Makes the packages for the other architectures, and runs their programs under emulation.
fn foreign(place: &Place, here: &Architecture, report: &mut Report) -> Result<()> {
    for other in dist::ARCHITECTURES.iter().filter(|one| *one != here) {
        if !target::is_there(&place.root, &other.triple())? {
            report.note(format!("not packed for {}: no target {}", other.name, other.triple()));
            continue;
        }
        apt::ensure(&[apt::QEMU_USER])?;
        // A separate folder, so that the results for this machine are kept.
        let apart = Place { folder: place.target.join("dist-foreign"), ..place.clone() };
        dist::make(&apart, &[other])?;
        let program = dist::program(&apart, other);
        let emulator = format!("qemu-{}", other.name);
        let said = Program::new(&place.root, &emulator, [&program, &PathBuf::from("--version")])
            .output()?;
        ensure!(said.starts_with("rxo "), "rxo for {} says {said:?}", other.name);
        report.note(format!("rxo for {} says its version under emulation", other.name));
    }
    Ok(())
}

/// Returns the names of files that differ between the lists, or are in only one of them.
fn differences(one: &[Made], other: &[Made]) -> Vec<String> {
    let differs = |made: &&Made| !other.contains(made);
    let lacks = other.iter().filter(|made| !one.iter().any(|seen| seen.name == made.name));
    one.iter().filter(differs).chain(lacks).map(|made| made.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let made = |name: &str, sha256: &str| Made {
            name: name.to_owned(),
            bytes: 1,
            sha256: sha256.to_owned(),
        };
        let one = [made("a", "0"), made("b", "1")];
        assert_eq!(differences(&one, &one), [""; 0]);
        assert_eq!(differences(&one, &[made("a", "0"), made("b", "2")]), ["b"]);
        assert_eq!(differences(&one[..1], &one), ["b"]);
        assert_eq!(differences(&one, &one[..1]), ["b"]);
    }

    #[test]
    fn the_segments_have_right_checksums() {
        let packet = segment(3);
        assert_eq!(checksum(&packet[..20], 0), 0);
        let pseudo = checksum_words(&packet[12..20]) + 6 + 1_020;
        assert_eq!(checksum(&packet[20..], pseudo), 0);
    }
}
