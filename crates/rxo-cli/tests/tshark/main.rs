//! Coalesced captures read by tshark: nothing is malformed, no checksum is bad, and nothing is an
//! error that was not one before.
//!
//! Needs the Debian package `tshark`. Without it the tests are told as ignored, and fail where
//! `CI=true`: nothing is skipped in silence.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

#[allow(dead_code, reason = "shared with another target")]
#[path = "../captures/world.rs"]
mod world;

use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};

use self::world::{Folder, mixed, pcap, several_interfaces, shared_captures};

const TESTS: [(&str, fn()); 2] =
    [("made_captures_are_read", made_captures), ("real_captures_are_read", real_captures)];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let is_there = Command::new("tshark").arg("--version").output().is_ok();
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    if !is_there {
        eprintln!(
            "coalesced captures were not read by another program: tshark is not installed; \
             `sudo apt-get install -y tshark` adds it"
        );
    }
    let trial = |(name, test): (&str, fn())| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!is_there && !is_ci)
    };
    libtest_mimic::run(&arguments, TESTS.into_iter().map(trial).collect()).exit_code()
}

fn made_captures() {
    let folder = Folder::new("tshark-made");
    folder.write("mixed.pcap", &pcap(&mixed(5, 60)));
    folder.write("several.pcapng", &several_interfaces());
    for name in ["mixed.pcap", "several.pcapng"] {
        for how in ["remember", "linux-gro", "menon-2008", "remember --checksum trust"] {
            check(&folder, &folder.0.join(name), how);
        }
    }
}

fn real_captures() {
    let folder = Folder::new("tshark-shared");
    for capture in shared_captures() {
        check(&folder, &capture, "remember");
    }
}

/// Coalesces `capture` and lets tshark compare.
fn check(folder: &Folder, capture: &Path, how: &str) {
    let line = format!("coalesce {} out.pcapng --policy {how}", capture.display());
    let output = folder.command(&line).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{line}");
    let (before, after) = (Complaints::of(capture), Complaints::of(&folder.0.join("out.pcapng")));
    assert!(after.packets > 0 && after.packets <= before.packets, "{line}: {after:?}");
    assert!(after.malformed <= before.malformed, "{line}: {before:?} {after:?}");
    assert!(after.errors <= before.errors, "{line}: {before:?} {after:?}");
    if how.contains("trust") {
        assert!(after.bad_checksums <= before.bad_checksums, "{line}: {before:?} {after:?}");
    } else {
        assert_eq!(after.bad_checksums, before.bad_checksums, "{line}: merged, or made");
    }
}

/// What tshark finds wrong with a capture.
#[derive(Debug, Default)]
struct Complaints {
    packets: usize,
    malformed: usize,
    /// Remarks of the severity "error".
    errors: usize,
    bad_checksums: usize,
}

/// tshark's number for that severity.
const ERROR: &str = "8388608";
/// And for a checksum that is bad.
const BAD: &str = "0";

impl Complaints {
    fn of(capture: &Path) -> Self {
        let fields =
            ["_ws.malformed", "_ws.expert.severity", "tcp.checksum.status", "ip.checksum.status"];
        let mut command = Command::new("tshark");
        command.args([
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
            "-T",
            "fields",
        ]);
        for field in fields {
            command.args(["-e", field]);
        }
        let output = command.arg("-r").arg(capture).output().unwrap();
        let mut found = Self::default();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let [malformed, severities, tcp, ip] = cells[..] else { panic!("{line}") };
            let bad = |cell: &str| cell.split(',').any(|status| status == BAD);
            found.packets += 1;
            found.malformed += usize::from(!malformed.is_empty());
            found.errors += severities.split(',').filter(|severity| *severity == ERROR).count();
            found.bad_checksums += usize::from(bad(tcp) || bad(ip));
        }
        found
    }
}
