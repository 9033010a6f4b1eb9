//! `rxo compare` on generated captures.
#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rxo_capture::{CaptureWriter, Interface, LinkType, Packet};
use rxo_frame::Instant;
use rxo_testkit::{Workload, seg, workload};
use serde_json::Value;

/// A folder that is deleted when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-compare-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a capture of these packets, a microsecond apart, and returns its path.
    fn capture(&self, name: &str, packets: &[Vec<u8>]) -> String {
        let path = self.0.join(name);
        write(&path, packets);
        path.display().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn write(path: &Path, packets: &[Vec<u8>]) {
    let mut writer = CaptureWriter::new(File::create(path).unwrap(), "a test").unwrap();
    let ethernet = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };
    let interface = writer.add_interface(&ethernet).unwrap();
    for (bytes, index) in packets.iter().zip(1..) {
        let packet = Packet {
            interface,
            at: Instant::from_micros(index),
            original_bytes: bytes.len() as u32,
            pieces: &[bytes],
            direction: None,
            comments: &[],
            custom: &[],
        };
        writer.write(&packet).unwrap();
    }
    writer.finish().unwrap();
}

fn rxo(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxo"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn compared(arguments: &[&str]) -> Value {
    let output = rxo(&[&["compare"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn row<'a>(table: &'a Value, policy: &str) -> &'a Value {
    let mut rows = table["policies"].as_array().unwrap().iter();
    rows.find(|row| row["policy"] == policy).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Every figure that `rxo compare` and `rxo analyze` both have is equal in both.
#[test]
fn all_policies_say_what_analyze_says_of_each() {
    let folder = Folder::new("all");
    let capture = folder.capture("a.pcapng", &workload(Workload::W3, 3_200, 1));
    let table = compared(&[&capture]);
    assert_eq!(
        (table["packets"].as_u64(), table["poll"].as_str()),
        (Some(3_200), Some("time:50us"))
    );
    let rows = table["policies"].as_array().unwrap();
    assert_eq!(rows.len(), 12);
    for row in rows.iter().filter(|row| row["policy"] != "juggler") {
        let policy = row["policy"].as_str().unwrap();
        let output = rxo(&["analyze", &capture, "--policy", policy, "--no-advice", "--json"]);
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        let outcome = &outcome["outcome"];
        for field in ["deliveries", "eliminated", "hold_ns"] {
            assert_eq!(row[field], outcome[field], "{field} of {policy}");
        }
    }
    let none = row(&table, "none");
    assert_eq!((none["eliminated"].as_u64(), none["copied_bytes"].as_u64()), (Some(0), Some(0)));
    let (gro, none) = (row(&table, "linux-gro")["cores"].as_f64(), none["cores"].as_f64());
    assert!(gro < none, "{gro:?} {none:?}");
}

#[test]
fn files_and_folders_are_read_and_files_are_policies() {
    let folder = Folder::new("files");
    let captures = Folder::new("files-captures");
    let capture = captures.capture("a.pcapng", &workload(Workload::W3, 640, 1));
    captures.capture("b.pcapng", &workload(Workload::W3, 640, 1));
    let mine = folder.file("mine.toml", "base = \"linux-gro\"\nmax_segments = 2\n");
    let table =
        compared(&[captures.0.to_str().unwrap(), "--policies", &format!("linux-gro,{mine}")]);
    assert_eq!(
        (table["packets"].as_u64(), table["sources"].as_array().unwrap().len()),
        (Some(1_280), 2)
    );
    let eliminated = |policy| row(&table, policy)["eliminated"].as_u64().unwrap();
    assert!(eliminated("mine") > 0 && eliminated("mine") < eliminated("linux-gro"));
    let settings = row(&table, "mine")["settings"].as_array().unwrap();
    assert!(settings.contains(&serde_json::json!(["max_segments", "2"])));
    let said = rxo(&["compare", &capture, "--policies", "none,juggler"]);
    let said = text(&said.stdout);
    for part in
        ["640 packets, ", "; poll time:50us", "late segments", "cores at 10 Gbit/s", "juggler"]
    {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

/// Packets take one of two paths, as in the paper, and one path is longer. The order is lost, and Juggler
/// restores it.
#[test]
fn juggler_restores_the_order_of_two_paths() {
    let folder = Folder::new("juggler");
    let (fast, slow): (Vec<u32>, Vec<u32>) = (0..2_000).partition(|n| n % 3 != 0);
    let mut order: Vec<(u32, u32)> = fast.into_iter().map(|n| (n, n)).collect();
    order.extend(slow.into_iter().map(|n| (n + 40, n)));
    order.sort_unstable();
    let segment = |n: u32| seg().seq(n * 1_000).len(1_000).id(n as u16).bytes();
    let packets: Vec<Vec<u8>> = order.into_iter().map(|(_, n)| segment(n)).collect();
    let capture = folder.capture("a.pcapng", &packets);
    let table = compared(&[&capture, "--policies", "linux-gro,juggler"]);
    let (gro, juggler) = (row(&table, "linux-gro"), row(&table, "juggler"));
    assert!(gro["late_segments"].as_u64() > Some(600), "{gro}");
    assert_eq!(juggler["late_segments"], 0);
    assert!(juggler["packets_per_delivery"].as_f64() > Some(20.0), "{juggler}");
    assert!(gro["packets_per_delivery"].as_f64() < Some(2.0), "{gro}");
}

#[test]
fn a_damaged_capture_gives_a_partial_table_and_an_exit_code() {
    let folder = Folder::new("damaged");
    let capture = folder.capture("a.pcapng", &workload(Workload::W3, 640, 1));
    let bytes = fs::read(&capture).unwrap();
    fs::write(&capture, &bytes[..bytes.len() - 100]).unwrap();
    let output = rxo(&["compare", &capture, "--policies", "none"]);
    assert!(text(&output.stdout).contains("PARTIAL: "), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), rxo(&["analyze", &capture]).status.code());
}

#[test]
fn what_is_typed_wrong_is_one_line_and_code_2() {
    let folder = Folder::new("wrong");
    let capture = folder.capture("a.pcapng", &workload(Workload::W3, 64, 1));
    let wrong = folder.file("wrong.toml", "base = \"linux-gro\"\nmax_segmets = 2\n");
    let twice = folder.file("linux-gro.toml", "base = \"linux-gro\"\n");
    let rows = [
        (vec!["compare"], "no capture: give files before the options"),
        (
            vec!["compare", &capture, "--policies", "lro"],
            "--policies there is no policy 'lro'; take",
        ),
        (
            vec!["compare", &capture, "--policies", "absent.toml"],
            "--policies absent.toml: No such file",
        ),
        (
            vec!["compare", &capture, "--policies", &wrong],
            "wrong.toml:2:1: there is no key `max_segmets`",
        ),
        (vec!["compare", &capture, "--rate", "0"], "--rate 0: give a rate"),
        (vec!["compare", &capture, "--poll", "often"], "--poll often is invalid"),
    ];
    for (arguments, message) in rows {
        let output = rxo(&arguments);
        let said = text(&output.stderr);
        assert!(said.contains(message) && said.lines().count() == 1, "{said}");
        assert_eq!(output.status.code(), Some(2), "{said}");
    }
    let output = rxo(&["compare", &capture, "--policies", &format!("linux-gro,{twice}")]);
    assert!(text(&output.stderr).contains("linux-gro: two policies have this name"));
}
