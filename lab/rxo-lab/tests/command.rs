//! Tests without a network: invalid arguments, and experiments on virtual time.

#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

fn lab(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rxo-lab")).args(line.split_whitespace()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_typed_wrong_is_one_line_and_code_2() {
    for (line, part) in [
        ("", "`rxo-lab --help`"),
        ("menom", "menom"),
        ("menon --quick acks", "--quick"),
        ("rsc --packets 1", "choose 500 to 200000"),
        ("bench", "a command is missing after `rxo-lab bench`"),
        ("rxo policies --jsn", "--json"),
    ] {
        let output = lab(line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{line}: {said}");
    }
}

#[test]
fn the_rxo_command_is_inside() {
    let output = lab("rxo policies --json");
    assert!(output.status.success(), "{}", stderr(&output));
    let policies: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!policies["policies"].as_array().unwrap().is_empty());
}

/// On virtual time the tables are the same on every machine, so every verdict must hold; a calibration has none.
#[test]
fn the_xen_experiment_on_virtual_time_needs_no_privilege() {
    let folder = std::env::temp_dir().join(format!("rxo-xen-report-{}", std::process::id()));
    let line = format!("xen --only rate,latency --json --out {}", folder.display());
    let output = lab(&line);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(folder.join("table-vi.svg").exists() && folder.join("table-vii.svg").exists());
    fs::remove_dir_all(&folder).unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let statements = report["figures"].as_array().unwrap().iter();
    let statements = statements.flat_map(|figure| figure["statements"].as_array().unwrap());
    let (calibrations, decided): (Vec<_>, Vec<_>) =
        statements.partition(|statement| statement["origin"] == "calibration");
    let holds: Vec<_> = decided.iter().map(|statement| &statement["holds"]).collect();
    assert_eq!((calibrations.len(), holds), (2, vec![&Value::Bool(true); 3]));
}

/// On virtual time every value is the same on every machine. With 750 µs between the paths the authors' TCP slowed down.
#[test]
fn juggler_batches_as_its_authors_measured() {
    let output = lab("juggler --json");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let statements = report["statements"].as_array().unwrap();
    let holds: Vec<_> = statements.iter().map(|statement| statement["holds"].as_bool()).collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(holds, [None, yes, yes, yes, no, yes], "{report}");
}
