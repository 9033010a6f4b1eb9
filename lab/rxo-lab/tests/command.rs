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
        ("xen --only speed", "--only speed: choose throughput, cost, rate, latency, guests"),
        ("all --only xem", "--only xem: choose policies, juggler, cast, xen,"),
        ("check Cargo.toml Cargo.toml", "Cargo.toml: "),
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

/// On virtual time the results are the same on every machine, so every claim must be reproduced; a calibration
/// has no verdict.
#[test]
fn the_xen_experiment_on_virtual_time_needs_no_privilege() {
    let folder = std::env::temp_dir().join(format!("rxo-lab-results-{}", std::process::id()));
    let out = folder.display();
    let output = lab(&format!("all --only xen.rate,xen.latency --out {out} --json"));
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&document["schema"], &document["extent"]),
        (&"rxo-lab/results/1".into(), &"full".into())
    );
    let claims = document["experiments"][0]["claims"].as_array().unwrap();
    let of = |status: &str| claims.iter().filter(|claim| claim["status"] == status).count();
    assert_eq!((of("calibration"), of("reproduced") + of("exceeds")), (3, 5), "{claims:?}");
    assert_eq!(of("weaker") + of("contradicted") + of("no-verdict"), 0, "{claims:?}");
    let results = format!("{out}/results.json");
    assert!(lab(&format!("check {results} {results}")).status.success());
    let kept = format!("{out}/kept.json");
    assert!(lab(&format!("check {results} {kept} --renew")).status.success());
    assert!(lab(&format!("check {results} {kept}")).status.success());
    the_documents_of_a_folder_are_one(&document, &folder);
    changed_results_are_a_difference(&document, &folder);
    fs::remove_dir_all(&folder).unwrap();
}

/// Results are compared with a folder that has a document for each experiment. One too many is a difference.
fn the_documents_of_a_folder_are_one(document: &Value, folder: &std::path::Path) {
    let (results, kept) = (folder.join("results.json"), folder.join("kept"));
    let check = || lab(&format!("check {} {}", results.display(), kept.display()));
    fs::create_dir(&kept).unwrap();
    assert_eq!(check().status.code(), Some(2), "an empty folder has no results");
    fs::copy(&results, kept.join("xen.json")).unwrap();
    assert!(check().status.success(), "{}", stderr(&check()));
    let mut other = document.clone();
    other["experiments"][0]["claims"][0]["id"] = "other.claim".into();
    fs::write(kept.join("other.json"), other.to_string()).unwrap();
    let output = check();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("other.claim status: nothing, expected "), "{text}");
}

/// A changed value on virtual time is a difference: code 1, and a line that names it.
fn changed_results_are_a_difference(document: &Value, folder: &std::path::Path) {
    let mut changed = document.clone();
    let claims = changed["experiments"][0]["claims"].as_array_mut().unwrap();
    let hold = claims.iter_mut().find(|claim| claim["id"] == "xen.hold.da").unwrap();
    hold["ours"]["value"] = 1.0.into();
    fs::write(folder.join("changed.json"), changed.to_string()).unwrap();
    let [one, other] = ["results.json", "changed.json"].map(|name| folder.join(name));
    let output = lab(&format!("check {} {}", one.display(), other.display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("xen.hold.da value: ") && text.lines().count() == 1, "{text}");
    changed["extent"] = "quick".into();
    fs::write(&other, changed.to_string()).unwrap();
    let output = lab(&format!("check {} {}", one.display(), other.display()));
    assert_eq!(output.status.code(), Some(2), "counts of another extent cannot be compared");
}

/// On virtual time every value is the same on every machine. With 750 µs between the paths the authors' TCP slowed down.
#[test]
fn juggler_batches_as_its_authors_measured() {
    let output = lab("juggler --json");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let claims = report["experiments"][0]["claims"].as_array().unwrap();
    let found: Vec<_> = claims.iter().map(|claim| claim["status"].as_str().unwrap()).collect();
    let expected =
        ["calibration", "reproduced", "reproduced", "reproduced", "contradicted", "reproduced"];
    assert_eq!(found, expected, "{report}");
}
