//! `rxo analyze` with the files that it can write: the HTML page, the tables, the projection.
#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A folder with a small capture, deleted with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-report-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("a <b>.pcap"), capture(200)).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn analyze(&self, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxo"));
        command.arg("analyze").arg(self.0.join("a <b>.pcap")).args(more).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a capture of one flow of full-size segments, a microsecond apart.
fn capture(segments: u32) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    for number in 0..segments {
        let frame = segment(number);
        let length = (frame.len() as u32).to_le_bytes();
        file.extend(1_700_000_000_u32.to_le_bytes());
        file.extend(number.to_le_bytes());
        file.extend(length);
        file.extend(length);
        file.extend(frame);
    }
    file
}

fn segment(number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let mut ip = vec![0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let words = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(ip);
    frame.extend([0x9c, 0x40, 0x01, 0xbd]);
    frame.extend((number * 1_460).to_be_bytes());
    frame.extend([0, 0, 0, 1, 0x50, 0x10, 0x10, 0, 0, 0, 0, 0]);
    frame.resize(14 + 1_500, 7);
    frame
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn page_and_projection_come_with_one_run() {
    let folder = Folder::new("all");
    let page = folder.path("r.html");
    let costs = "packet=800ns,byte=0.3ns,coalesce=30ns,device=100ns";
    let more = ["--checksum", "trust", "--html", &page, "--costs", costs];
    let output = folder.analyze(&more);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("One core is full at") && text.contains("cores with it"), "{text}");
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("fewer packets for the host") && page.contains("At other rates"));
    assert!(page.contains("a &#60;b&#62;.pcap") && !page.contains("a <b>"), "the name is escaped");
}

#[test]
fn the_json_has_the_projection_and_no_more_flows_than_asked_for() {
    let folder = Folder::new("json");
    let more = ["--json", "--top", "0", "--costs", "packet=1us,byte=1ns"];
    let output = folder.analyze(&more);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["flows"].as_array().unwrap().len(), 0);
    let projection = &report["projection"];
    let bytes = projection["packet_bytes"].as_f64().unwrap();
    assert!((bytes - 1_514.0).abs() < 1e-9, "{projection}");
    let without = projection["without_ns"].as_f64().unwrap();
    assert!((without - 2_514.0).abs() < 1e-9, "{projection}");
    assert_eq!(projection["points"].as_array().unwrap().len(), 10);
}

#[test]
fn without_costs_nothing_is_projected() {
    let output = Folder::new("none").analyze(&["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["projection"].is_null());
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_names_those_that_have_it() {
    let folder = Folder::new("refused");
    let output = folder.analyze(&["--parquet", &folder.path("tables")]);
    let said = said(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    for part in ["--parquet ", "/tables", "`--features parquet`", "`pip install`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(output.stdout.is_empty() && !fs::exists(folder.path("tables")).unwrap());
}

/// The tables are complete even if no flow is listed.
#[cfg(feature = "parquet")]
#[test]
fn tables_come_with_the_same_run() {
    let folder = Folder::new("tables");
    let output = folder.analyze(&["--json", "--top", "0", "--parquet", &folder.path("tables")]);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["flows"].as_array().unwrap().len(), 0);
    for name in ["flows", "settings", "reasons"] {
        let table = fs::read(folder.path(&format!("tables/{name}/part-0.parquet"))).unwrap();
        assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"), "{name}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn a_place_that_cannot_be_written_costs_no_result() {
    let folder = Folder::new("full");
    // The disk is full only during the write, so it cannot be detected earlier.
    let tables = folder.path("tables");
    fs::create_dir_all(folder.path("tables/flows/part-0.parquet")).unwrap();
    let output = folder.analyze(&["--parquet", &tables]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("flows/part-0.parquet"), "{}", said(&output));
    assert_eq!(said(&output).lines().count(), 1);
    assert!(!output.stdout.is_empty());
}
