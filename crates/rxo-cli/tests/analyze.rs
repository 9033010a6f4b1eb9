//! `rxo analyze` on generated captures.
#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rxo_capture::{CaptureWriter, Interface, LinkType, Packet};
use rxo_frame::Instant;
use rxo_testkit::{Workload, workload};
use serde_json::Value;

/// A folder that is deleted when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-analyze-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a capture of 16 flows that take turns with four packets each, and returns its path.
    fn capture(&self, name: &str, packets: usize) -> String {
        let path = self.0.join(name);
        write(&path, packets);
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn write(path: &Path, packets: usize) {
    let mut writer = CaptureWriter::new(File::create(path).unwrap(), "a test").unwrap();
    let ethernet = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };
    let interface = writer.add_interface(&ethernet).unwrap();
    for (bytes, index) in workload(Workload::W3, packets, 1).iter().zip(1..) {
        writer
            .write(&Packet {
                interface,
                at: Instant::from_micros(index),
                original_bytes: bytes.len() as u32,
                pieces: &[bytes],
                direction: None,
                comments: &[],
                custom: &[],
            })
            .unwrap();
    }
    writer.finish().unwrap();
}

fn rxo(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxo"));
    command.arg("analyze").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_report_says_what_would_be_saved_and_why_not_more() {
    let folder = Folder::new("report");
    let output = rxo(&[&folder.capture("a.pcapng", 6_400)]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in [
        "% fewer for the host's stack: 1,664 deliveries of 6,400 packets, with --poll time:50us",
        "decision    Worth it: it saves ",
        "(pcapng): 6,400 packets",
        "4,736 of 6,400 packets, 7400 of 10,000; 1,664 deliveries are left, 3.85 packets each",
        "end_of_poll  1,664  100.0 %",
        "Flows with most packets (10 of 16)",
        "ethtool -C IF rx-usecs",
    ] {
        assert!(said.contains(part), "'{part}' is not in\n{said}");
    }
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn the_same_for_a_program() {
    let folder = Folder::new("json");
    let (a, b) = (folder.capture("a.pcapng", 640), folder.capture("b.pcapng", 640));
    let output = rxo(&[&a, &b, "--json", "--sweep", "flows=1,4", "hold=packets:8..32*2"]);
    let report = json(&output);
    assert_eq!(report["traffic"]["packets"], 1_280);
    assert_eq!(report["sources"].as_array().unwrap().len(), 2);
    assert_eq!(report["sweep"]["outcomes"].as_array().unwrap().len(), 6);
    assert_eq!(report["sweep"]["axes"][1]["values"][2], "packets:32");
    assert_eq!(report["outcome"]["poll"], "time:50us");
    assert_eq!(report["decision"]["poll"], "time:50us");
    assert!(report["command"].as_str().unwrap().starts_with("rxo analyze "), "{report}");
    assert_eq!(report["partial"], Value::Null);
    assert_eq!(report["advice"]["is_exact"], true);
}

#[test]
fn what_was_read_of_a_damaged_capture_is_reported_and_the_exit_code_says_so() {
    let folder = Folder::new("cut");
    let path = folder.capture("a.pcapng", 100);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    let whole = folder.capture("b.pcapng", 50);
    let output = rxo(&[&path, &whole]);
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(said.contains("a.pcapng (pcapng): 99 packets in 98.0 us from 1970-01-01 00:00:00 UTC; NOT READ TO ITS END"), "{said}");
    assert!(said.contains("149 packets, ") && said.contains("* PARTIAL: "), "{said}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("a.pcapng ends too early at byte "), "{error}");
}

#[test]
fn a_file_that_is_no_capture_is_a_failure_unless_others_are() {
    let folder = Folder::new("foreign");
    let foreign = folder.0.join("readme.txt");
    fs::write(&foreign, "this is no capture at all").unwrap();
    let foreign = foreign.display().to_string();
    for path in [foreign.as_str(), "/nowhere/at/all.pcap"] {
        let output = rxo(&[path]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(output.stdout.is_empty() && error.lines().count() == 1, "{error}");
        assert!(error.contains(path), "{error}");
    }
    let output = rxo(&[&foreign, &folder.capture("b.pcapng", 50), "--json"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(json(&output)["traffic"]["packets"], 50);
}

#[test]
fn what_is_typed_wrong_is_one_line_and_code_2() {
    let rows: [(&[&str], &str); 4] = [
        (&[], "no capture: give files before the options"),
        (&["a", "--poll", "often"], "--poll often is invalid: packets:N"),
        (&["a", "--sweep", "flows=1..2000"], "at most 64"),
        (
            &["a", "--hold", "packets:60000", "--sweep", "flows=1..20"],
            "the engines of this sweep need",
        ),
    ];
    for (arguments, part) in rows {
        let output = rxo(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.lines().count() == 1 && error.contains(part), "{arguments:?}: {error}");
    }
}

fn piped(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_rxo"))
        .arg("analyze")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn standard_input_is_a_capture_too() {
    let folder = Folder::new("pipe");
    let path = folder.capture("a.pcapng", 640);
    let mut child = piped(&["-", "--json"]);
    child.stdin.take().unwrap().write_all(&fs::read(&path).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (mut report, mut from_file) = (json(&output), json(&rxo(&[&path, "--json"])));
    assert_eq!(report["sources"][0]["name"], "-");
    for (report, name) in [(&mut report, "-"), (&mut from_file, path.as_str())] {
        for flow in report["flows"].as_array_mut().unwrap() {
            assert_eq!([flow["first_file"].take(), flow["last_file"].take()], [name; 2]);
        }
    }
    for part in ["outcome", "traffic", "flows"] {
        assert_eq!(report[part], from_file[part], "{part}");
    }
}

#[test]
fn a_signal_gives_what_is_known_so_far() {
    let folder = Folder::new("signal");
    let bytes = fs::read(folder.capture("a.pcapng", 5_000)).unwrap();
    for signal in ["-INT", "-TERM"] {
        let mut child = piped(&["-"]);
        let mut input = child.stdin.take().unwrap();
        // The child reads all that was written before the next write; then the pipe stays silent.
        input.write_all(&bytes).unwrap();
        while is_asleep(child.id()) != Some(true) {
            std::thread::yield_now();
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        drop(input);
        let (said, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(3), "{said}{error}");
        assert!(said.contains("* PARTIAL: interrupted after "), "{said}");
        assert!(error.starts_with("rxo: interrupted after "), "{error}");
    }
}

/// Returns `true` if the process sleeps and has the thread that reads standard input; `None` if it has ended.
fn is_asleep(process: u32) -> Option<bool> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?.count();
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    Some(tasks == 2 && state == 'S')
}

#[test]
fn parts_of_captures_give_the_report_of_the_whole() {
    let folder = Folder::new("parts");
    let (a, b) = (folder.capture("a.pcapng", 4_000), folder.capture("b.pcapng", 3_000));
    let json = |arguments: &[&str]| -> Value {
        let output = rxo(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let whole = json(&[&a, &b, "--json"]);
    let saved = |name: &str| folder.0.join(name).display().to_string();
    for number in 1..=5 {
        let (part, path) = (format!("{number}/5"), saved(&format!("p{number}")));
        json(&[&a, &b, "--json", "--part", &part, "--save", &path]);
    }
    let parts: Vec<String> = [3, 1, 5, 2, 4].map(|number| saved(&format!("p{number}"))).to_vec();
    let all: Vec<&str> = parts.iter().map(String::as_str).chain(["--json"]).collect();
    let sum = json(&all);
    for field in ["traffic", "sources"] {
        assert_eq!(whole[field], sum[field], "{field}");
    }
    // These captures have no pauses, so only those flow figures agree that do not depend on polls.
    let payloads = |report: &Value| -> Vec<Value> {
        let flows = report["flows"].as_array().unwrap();
        flows.iter().map(|flow| flow["payload_bytes"].clone()).collect()
    };
    assert_eq!(payloads(&whole), payloads(&sum));
    let eliminated = |report: &Value| report["outcome"]["eliminated"].as_u64().unwrap();
    let error = sum["outcome"]["eliminated_error"].as_u64().unwrap();
    assert!(eliminated(&whole).abs_diff(eliminated(&sum)) <= error, "{error}");

    let said = |arguments: &[&str]| {
        let output = rxo(arguments);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said(&[&parts[0], &parts[0]]).contains("its packets are already in another part"));
    assert!(said(&[&parts[0], &a]).contains("parts and captures together"));
    let polled = said(&[&parts[0], "--poll", "time:9us"]);
    assert!(polled.contains("--poll: saved parts have their own settings"), "{polled}");
    assert!(said(&[&parts[0]]).contains("parts of the captures are missing"));
    let bytes = fs::read(&parts[1]).unwrap();
    fs::write(&parts[1], &bytes[..bytes.len() / 2]).unwrap();
    let damaged = said(&[&parts[0], &parts[1]]);
    assert!(damaged.contains("it is a part, but truncated or damaged"), "{damaged}");
    assert_eq!(damaged.lines().count(), 1);
}

#[test]
fn a_part_without_a_readable_file_is_empty_with_its_reason() {
    let folder = Folder::new("unread");
    let foreign = folder.0.join("readme.txt").display().to_string();
    fs::write(&foreign, "this is no capture at all".repeat(4_000)).unwrap();
    let readable = folder.capture("z.pcapng", 100);
    let parts = ["1/2", "2/2"].map(|part| {
        let path = folder.0.join(part.replace('/', "-")).display().to_string();
        let output = rxo(&[&foreign, &readable, "--part", part, "--save", &path]);
        (output.status.code(), text(&output.stderr), path)
    });
    let (code, error, path) = &parts[0];
    assert_eq!((*code, error.lines().count()), (Some(3), 1), "{error}");
    assert!(error.contains("readme.txt"), "{error}");
    let merged = json(&rxo(&[path, &parts[1].2, "--json"]));
    assert_eq!(merged["traffic"]["packets"], 100);
    let whole = json(&rxo(&[&foreign, &readable, "--json"]));
    for field in ["traffic", "sources", "partial"] {
        assert_eq!(merged[field], whole[field], "{field}");
    }
}

#[test]
fn parts_with_polls_by_packets_say_by_how_much_they_may_be_wrong() {
    let folder = Folder::new("bounds");
    let capture = folder.capture("a.pcapng", 6_000);
    let poll = ["--poll", "packets:50"];
    let run = |arguments: &[&str]| {
        let output = rxo(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let outcome = |arguments: &[&str]| -> Value {
        let report: Value = serde_json::from_str(&run(arguments)).unwrap();
        report["outcome"].clone()
    };
    let whole = outcome(&[&capture, "--json", poll[0], poll[1]]);
    let saved = [1, 2, 3].map(|number| {
        let (part, path) = (format!("{number}/3"), folder.0.join(format!("p{number}")));
        let path = path.display().to_string();
        run(&[&capture, poll[0], poll[1], "--part", &part, "--save", &path]);
        path
    });
    let saved = [0, 1, 2].map(|part: usize| saved[part].as_str());
    let sum = outcome(&[&saved[..], &["--json"]].concat());
    let number = |outcome: &Value, field: &str| outcome[field].as_u64().unwrap();
    assert_eq!(number(&whole, "eliminated_error"), 0);
    let error = number(&whole, "eliminated").abs_diff(number(&sum, "eliminated"));
    let bound = number(&sum, "eliminated_error");
    assert!(error <= bound, "{error} {bound}");
    // Most aggregates have two or three parts, so that the bound is meaningful.
    assert!(bound > 0 && bound < number(&sum, "eliminated"), "{bound}");
    let said = run(&saved);
    let give_or_take = said.lines().find(|line| line.contains("give or take"));
    assert!(give_or_take.is_some_and(|line| line.contains("--poll packets:50")), "{said}");
}

#[test]
fn a_directory_stands_for_its_files() {
    let folder = Folder::new("directory");
    folder.capture("b.pcapng", 1_000);
    folder.capture("a.pcapng", 500);
    let output = rxo(&[&folder.0.display().to_string(), "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["traffic"]["packets"], 1_500);
    assert!(report["sources"][0]["name"].as_str().unwrap().ends_with("a.pcapng"));
    assert!(!text(&output.stdout).contains("directories in it"));
}

#[test]
fn directories_in_a_directory_are_not_read_and_the_report_says_so() {
    let folder = Folder::new("directories");
    folder.capture("a.pcapng", 500);
    for (name, more) in [("one", 100), (".hidden", 100), ("two", 300)] {
        fs::create_dir(folder.0.join(name)).unwrap();
        folder.capture(&format!("{name}/b.pcapng"), more);
    }
    let name = folder.0.display().to_string();
    let said = text(&rxo(&[&name, "--no-advice"]).stdout);
    let note = format!(
        "* {name}: 2 directories in it were not read; to read them too, give {name} {name}/*/"
    );
    assert!(said.contains(&note), "{said}");
    // The shell makes these names of `DIR DIR/*/`.
    let output = rxo(&[&name, &format!("{name}/one/"), &format!("{name}/two/"), "--json"]);
    assert_eq!(json(&output)["traffic"]["packets"], 900);
    fs::remove_file(folder.0.join("a.pcapng")).unwrap();
    let refused = text(&rxo(&[&name]).stderr);
    let wanted = format!("{name}: the directory has no files, only directories; give {name}/*/");
    assert!(refused.contains(&wanted), "{refused}");
}
