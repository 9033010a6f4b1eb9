//! Runs tshark and editcap on a capture.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program whose Debian package contains both tshark and editcap.
pub(crate) const PROGRAM: &str = "tshark";

/// One packet in tshark's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Nanoseconds since 1970; `None` if the file has no time for it.
    pub(crate) at: Option<u64>,
    pub(crate) original_bytes: u32,
    pub(crate) kept_bytes: usize,
    /// Number from the start of the file; `None` for pcap.
    pub(crate) interface: Option<u32>,
    pub(crate) comments: String,
}

pub(crate) fn is_installed() -> bool {
    let tried =
        Command::new(PROGRAM).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Lists every packet of `file`, and tshark's complaints.
pub(crate) fn list(file: &Path) -> (Vec<Line>, String) {
    let fields =
        ["frame.time_epoch", "frame.len", "frame.cap_len", "frame.interface_id", "frame.comment"];
    let mut command = Command::new(PROGRAM);
    // Dissecting the packets is not needed here and takes most of the time.
    command.args(["-n", "--disable-protocol", "eth", "-T", "fields", "-E", "separator=;", "-r"]);
    command.arg(file);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = run(&mut command);
    let text = String::from_utf8(output.stdout).unwrap();
    (text.lines().map(line).collect(), complaints(&output.stderr))
}

fn line(line: &str) -> Line {
    let fields: Vec<&str> = line.splitn(5, ';').collect();
    let [at, original, kept, interface, comments] = fields[..] else { panic!("{line}") };
    Line {
        at: (!at.is_empty()).then(|| nanos(at)),
        original_bytes: original.parse().unwrap(),
        kept_bytes: kept.parse().unwrap(),
        interface: interface.parse().ok(),
        comments: comments.to_owned(),
    }
}

/// Parses `1700000000.123456789` as nanoseconds.
fn nanos(seconds: &str) -> u64 {
    let (seconds, fraction) = seconds.split_once('.').unwrap();
    assert_eq!(fraction.len(), 9, "{fraction}");
    seconds.parse::<u64>().unwrap() * 1_000_000_000 + fraction.parse::<u64>().unwrap()
}

/// Removes the advice for running as root from `stderr`.
fn complaints(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = text.lines().filter(|line| line.starts_with("tshark:"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Converts the packets to another format with editcap.
pub(crate) fn convert(file: &Path, format: &str, into: &Path) -> PathBuf {
    let made = into.join(format!("converted.{format}"));
    let output = run(Command::new("editcap").args(["-F", format]).args([file, &made]));
    assert!(made.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    made
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}
