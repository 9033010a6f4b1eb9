//! tshark reads coalesced captures: no packet is malformed, no checksum is bad, and there are no new errors.
//! It also reads membership reports (`memberships.rs`), and aggregates with our Lua dissector (`dissector.rs`), and counts
//! packets beside our filters (`filter.rs`); their library, libpcap, is tshark's, too.
//!
//! Needs the Debian package `tshark`. Without it the tests are reported as ignored, and fail under `CI=true`:
//! none is skipped silently.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

#[allow(dead_code, reason = "shared with another target")]
#[path = "../captures/world.rs"]
mod world;

mod dissector;
mod filter;
mod memberships;

use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};
use rxo_testkit::seg;

use self::world::{Folder, mixed, pcap, several_interfaces, shared_captures};

const TESTS: [(&str, fn()); 8] = [
    ("made_captures_are_read", made_captures),
    ("real_captures_are_read", real_captures),
    ("segments_are_counted_alike", segments_are_counted_alike),
    ("memberships_are_read", memberships::are_read),
    ("filters_accept_what_tshark_does", filter::accepts_what_tshark_does),
    ("unusable_filters_are_one_line", filter::is_refused_in_one_line),
    ("filters_accept_ipv6_of_any_bsd", filter::accepts_ipv6_of_any_bsd),
    ("the_dissector_names_the_aggregates", dissector::names_the_aggregates),
];

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

/// Coalesces `capture` and compares tshark's complaints before and after.
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

/// `rxo analyze` and tshark count the same TCP packets, data segments and pure ACKs, also for every
/// combination of flags on an empty segment.
fn segments_are_counted_alike() {
    let folder = Folder::new("tshark-counts");
    let mut packets = mixed(7, 60);
    packets.extend((0..0x40).map(|low| seg().flags(low).len(0)));
    packets.extend([seg().pure_ack().ece(), seg().len(1).psh()]);
    folder.write("flags.pcap", &pcap(&packets));
    let captures = std::iter::once(folder.0.join("flags.pcap")).chain(shared_captures());
    for capture in captures {
        let line = format!("analyze {} --json --no-advice", capture.display());
        let output = folder.command(&line).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let count = |name: &str| report["traffic"][name].as_u64().unwrap();
        let ours = [count("tcp_packets"), count("data_segments"), count("pure_acks")];
        assert_eq!(ours, counted(&capture), "{}", capture.display());
    }
}

/// Returns tshark's count of TCP packets, data segments and pure ACKs, without fragments and packets quoted
/// in ICMP.
fn counted(capture: &Path) -> [u64; 3] {
    let whole = "tcp && !icmp && !icmpv6 && !(ip.flags.mf == 1) && !(ip.frag_offset > 0)";
    let mut command = Command::new("tshark");
    command.args(["-o", "ip.defragment:FALSE", "-Y", whole, "-T", "fields"]);
    command.args(["-e", "tcp.len", "-e", "tcp.flags", "-r"]);
    let output = command.arg(capture).output().unwrap();
    let mut counts = [0; 3];
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (length, flags) = line.split_once('\t').unwrap();
        let flags = u16::from_str_radix(flags.strip_prefix("0x").unwrap(), 16).unwrap();
        let is_data = length.parse::<u32>().unwrap() > 0;
        let is_pure_ack = !is_data && flags & (ACK | SYN | FIN | RST) == ACK;
        counts =
            [counts[0] + 1, counts[1] + u64::from(is_data), counts[2] + u64::from(is_pure_ack)];
    }
    counts
}

/// The TCP flag FIN (RFC 9293, section 3.1).
const FIN: u16 = 1;
const SYN: u16 = 2;
const RST: u16 = 4;
const ACK: u16 = 16;

/// The complaints of tshark about a capture.
#[derive(Debug, Default)]
struct Complaints {
    packets: usize,
    malformed: usize,
    /// Remarks with the severity "error".
    errors: usize,
    bad_checksums: usize,
}

/// tshark's number for the severity "error".
const ERROR: &str = "8388608";
/// tshark's number for a bad checksum.
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
