//! `rxo repro menon`, small: the experiment works, its figures are drawn, its sentences are made.

use std::fs;
use std::time::Duration;

use rxo_lab::Namespace;
use serde_json::Value;

use crate::Test;
use crate::process::run_within;
use crate::repro::Scratch;

pub(crate) const TESTS: &[Test] = &[
    ("what_coalescing_does_to_those_who_count_acks", those_who_count_acks),
    ("acks_experiments_that_cannot_be_are_refused", experiments_that_cannot_be),
];

/// For a machine that builds beside.
const MINUTE: Duration = Duration::from_secs(60);

fn those_who_count_acks() {
    let scratch = Scratch::new("menon");
    let out = scratch.file("figures");
    let namespace = Namespace::new("repro").unwrap();
    let line = format!("repro menon --part acks --quick --out {} --json", out.display());
    let output = run_within(&namespace, &line, MINUTE);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let median = |row: &Value, name: &str| row[name]["median"].as_f64().unwrap();
    let rows = |name: &str| report[name].as_array().unwrap().clone();
    for row in rows("split") {
        assert_eq!(row["network"], "delay");
        assert!(median(&row, "mbit_per_s") > 5.0, "{row}");
        assert!(row["window"].as_array().unwrap().len() > 10, "{row}");
        let is_coalesced = row["treatment"] != "none";
        assert_eq!(median(&row, "per_delivery") > 1.5, is_coalesced, "{row}");
    }
    for sender in ["counting", "cubic"] {
        let of = |treatment: &str| {
            let rows = rows("split").into_iter();
            let mut rows = rows.filter(|row| row["sender"] == sender);
            median(&rows.find(|row| row["treatment"] == treatment).unwrap(), "acks_per_segment")
        };
        assert!(of("coalesced") < of("none"), "{sender}: {report}");
        assert!(of("coalesced") < of("split"), "{sender}: {report}");
    }
    let keep = rows("keep");
    assert_eq!(keep.len(), 3);
    assert!(median(&keep[0], "per_delivery") < 1.1 && median(&keep[2], "per_delivery") > 1.5);
    for verdict in rows("verdicts") {
        assert!(verdict["holds"].is_boolean(), "{verdict}");
    }
    for name in ["window-counting.svg", "window-cubic.svg", "keep-every.svg"] {
        assert!(fs::read_to_string(out.join(name)).unwrap().starts_with("<svg "), "{name}");
    }
}

fn experiments_that_cannot_be() {
    let namespace = Namespace::new("repro").unwrap();
    let output = run_within(&namespace, "repro menon --rounds 0", MINUTE);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--rounds 0: choose 1 to 100") && said.lines().count() == 1, "{said}");
}
