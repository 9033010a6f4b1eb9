//! The RSC experiment at a small scale, and the commands for captures with real traffic.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rxo_testbed::Namespace;
use serde_json::Value;

use crate::process::run_within;
use crate::report::{LONG, Scratch};
use crate::{PROGRAM, Test, experiment, figures, json, status};

pub(crate) const TESTS: &[Test] = &[
    ("senders_are_captured_and_the_figures_drawn", senders_are_captured),
    ("what_coalescing_took_of_live_traffic_is_given_back", what_was_taken_is_given_back),
    ("levels_of_coalescing_cost_what_they_cost", levels_of_coalescing),
    ("ctrl_c_prints_what_is_known", ctrl_c_prints_what_is_known),
    ("captures_that_are_not_there_are_named", captures_that_are_not_there),
];

/// Captures real traffic: two thousand packets of four senders with 8 KB payloads, and other captures.
/// Returns the results; the error of a run that found no traffic.
fn captured(scratch: &Scratch) -> Result<Value, String> {
    let keep = scratch.file("kept").display().to_string();
    let namespace = Namespace::new("repro").unwrap();
    let line = format!("rsc --only captures --quick --keep {keep} --json");
    let output = run_within(&namespace, &line, LONG);
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut document: Value = serde_json::from_slice(&output.stdout).unwrap();
    Ok(document["experiments"][0].take())
}

/// Captures traffic as [`captured`] does, and again while `check` finds a fault: on a busy machine the senders may
/// stand still, and their packets be lost or merged. Returns the results.
fn captured_until_usual(scratch: &Scratch, check: impl Fn(&Value) -> Result<(), String>) -> Value {
    let mut faults = Vec::new();
    while faults.len() < TRIES {
        match captured(scratch).and_then(|report| check(&report).map(|()| report)) {
            Ok(report) => return report,
            Err(fault) => faults.push(fault),
        }
    }
    panic!("{faults:#?}");
}

const TRIES: usize = 4;

fn senders_are_captured() {
    let scratch = Scratch::new("captures");
    let report = captured_until_usual(&scratch, |report| {
        let unusual = examined(report).into_iter().find(|capture| !is_usual(capture));
        unusual
            .map_or_else(|| verdicts(&studied_again(&scratch)), |capture| Err(capture.to_string()))
    });
    let captures = examined(&report);
    assert_eq!(captures.len(), 6);
    assert_eq!(figures(&report), [4, 5, 6, 7, 8].map(|number| format!("figure-{number}")));
    they_say_the_same(&captures, &studied_again(&scratch));
    captures_that_are_damaged(&scratch);
}

/// Returns `true` if no frame is missing, and every payload ends with PSH, and most other segments are without it.
fn is_usual(capture: &Value) -> bool {
    let data = capture["interleaving"]["data_segments"].as_f64().unwrap();
    let pushed = capture["interleaving"]["pushed_segments"].as_f64().unwrap();
    let segments = match capture["condition"]["payload_kb"].as_u64().unwrap() {
        2 => 2.0,
        8 => 6.0,
        _ => 45.0,
    };
    capture["packets"] == 2_000
        && capture["lost_frames"] == 0
        && pushed >= data / segments - 100.0
        && pushed < 0.6 * data
}

fn studied_again(scratch: &Scratch) -> Value {
    experiment(&format!("rsc --captures {}", scratch.file("kept").display()))
}

/// Returns an error unless the claims that follow from payload and buffer sizes are reproduced.
fn verdicts(report: &Value) -> Result<(), String> {
    let claims = ["rsc.fig7.small", "rsc.fig7.large", "rsc.fig8.sixteen"];
    let are = claims.iter().all(|claim| status(report, claim) == "reproduced");
    are.then_some(()).ok_or_else(|| report["claims"].to_string())
}

/// Returns the results of each capture.
fn examined(report: &Value) -> Vec<&Value> {
    report["measured"]["captures"].as_array().unwrap().iter().collect()
}

fn they_say_the_same(captures: &[&Value], report: &Value) {
    // No times are measured, so that verdicts do not depend on the machine's load.
    assert_eq!(report["load"].as_array().unwrap().len(), 0, "{report}");
    let again = examined(report);
    assert_eq!(again.len(), captures.len());
    for capture in captures {
        let same = again.iter().find(|other| other["name"] == capture["name"]).unwrap();
        for key in ["condition", "eliminated", "by_entries", "by_buffer", "by_window"] {
            assert_eq!(same[key], capture[key], "{}: {key}", capture["name"]);
        }
    }
}

/// Real traffic is restored without loss after coalescing, whatever its timing, and the commands report equal
/// numbers.
fn what_was_taken_is_given_back() {
    let scratch = Scratch::new("expand");
    captured_until_usual(&scratch, |_| Ok(()));
    let captures: Vec<PathBuf> =
        fs::read_dir(scratch.file("kept")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(captures.len(), 6);
    for capture in &captures {
        let name = capture.display();
        let studied = json(&format!("rxo analyze {name} --no-advice --json"));
        assert_eq!(studied["traffic"]["packets"], 2_000, "{name}");
        assert_eq!(studied["traffic"]["checksums"]["wrong"], 0, "{name}");
        for policy in ["linux-gro", "remember", "rsc-2006"] {
            there_and_back(&scratch, capture, policy);
        }
    }
}

fn there_and_back(scratch: &Scratch, capture: &Path, policy: &str) {
    let name = capture.display();
    let [coalesced, expanded] = ["coalesced.pcapng", "expanded.pcapng"].map(|n| scratch.file(n));
    let (there, back) = (coalesced.display(), expanded.display());
    json(&format!("rxo coalesce {name} {there} --policy {policy} --json"));
    let (whole, fewer) = (fs::read(capture).unwrap(), fs::read(&coalesced).unwrap());
    assert_ne!(whole, fewer, "{name}, {policy}: nothing was coalesced");
    let packets = json(&format!("rxo analyze {there} --policy none --no-advice --json"));
    let packets = packets["traffic"]["packets"].as_u64().unwrap();
    assert!(packets < 1_600, "{name}, {policy}: still {packets} packets");
    json(&format!("rxo expand {there} {back} --json"));
    json(&format!("rxo verify {name} {back} --json"));
    assert_eq!(records(&expanded), records(capture), "{name}, {policy}");
}

/// Returns time, interface, length and bytes of every packet block: the fields that `expand` restores,
/// whatever the headers of the file.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    let mut blocks = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let (block, after) = rest.split_at(word(4) as usize);
        if word(0) == PACKET_BLOCK {
            let kept = u32::from_le_bytes(block[20..24].try_into().unwrap()) as usize;
            blocks.push(block[8..28 + kept].to_vec());
        }
        rest = after;
    }
    blocks
}

const PACKET_BLOCK: u32 = 6;

fn levels_of_coalescing() {
    let report = experiment("rsc --only cpu --quick");
    let costs = report["measured"]["costs"].as_array().unwrap();
    assert_eq!(costs.len(), 8);
    for cost in costs {
        let value = |name: &str| cost[name].as_f64().unwrap();
        let most = match cost["level"].as_str().unwrap() {
            "Regular" => 1.0,
            "RSC_2" => 2.0,
            "RSC_3" => 3.0,
            _ => 5.0,
        };
        let k = value("packets_per_delivery");
        assert!(k <= most + 1e-9 && (k > 1.0) == (most > 1.0), "{cost}");
        assert!(value("ns_per_byte") > 0.0 && value("gbit_per_s") > 0.0, "{cost}");
    }
    assert_eq!(figures(&report)[..2], ["figure-10", "figure-12"]);
}

fn ctrl_c_prints_what_is_known() {
    let mut command = Command::new(PROGRAM);
    // So many packets that the signal arrives long before the end.
    command.args(["rsc", "--packets", "20000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The first capture is complete, the next one is in progress.
    let first = |line: &std::io::Result<String>| {
        line.as_ref().unwrap().contains("4 connections, 2 KB payloads")
    };
    assert!(lines.any(|line| first(&line)));
    let signal = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &signal]).status().unwrap().success());
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let is_known = |line: &str| line.contains("fig4.range.low") && !line.contains("not measured");
    assert!(text.lines().any(is_known) && text.contains("Partial:"), "{text}");
    assert!(lines.last().unwrap().unwrap().contains("stopped by a signal"));
}

/// The part before the damage is reported, and the exit code shows that it is incomplete.
fn captures_that_are_damaged(scratch: &Scratch) {
    let cut = scratch.file("cut");
    fs::create_dir(&cut).unwrap();
    let name = "4-connections-8-KB.pcapng";
    let whole = fs::read(scratch.file("kept").join(name)).unwrap();
    fs::write(cut.join(name), &whole[..whole.len() / 2]).unwrap();
    let namespace = Namespace::new("repro").unwrap();
    let line = format!("rsc --captures {} --json", cut.display());
    let output = run_within(&namespace, &line, LONG);
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let capture = examined(&report["experiments"][0])[0];
    let packets = capture["packets"].as_u64().unwrap();
    assert!((500..2_000).contains(&packets), "{packets}");
    assert!(report["partial"].as_str().unwrap().contains("ends too early"), "{report}");
}

fn captures_that_are_not_there() {
    let namespace = Namespace::new("repro").unwrap();
    for (flags, part) in [
        ("--captures /nowhere", "/nowhere: cannot be read"),
        ("--packets 1", "--packets 1: choose 500 to 200000"),
    ] {
        let output = run_within(&namespace, &format!("rsc {flags}"), LONG);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    }
}
