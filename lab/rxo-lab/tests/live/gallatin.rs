//! Gallatin's experiment at a small scale.

use std::fs;

use serde_json::Value;

use crate::Test;
use crate::report::{Scratch, permits_verdicts, report};

pub(crate) const TESTS: &[Test] =
    &[("the_gallatin_experiment_is_repeated", the_gallatin_experiment_is_repeated)];

fn the_gallatin_experiment_is_repeated() {
    let scratch = Scratch::new("gallatin");
    let out = scratch.file("figures").display().to_string();
    let line = |seconds| format!("gallatin --quick {seconds} --out {out} --json");
    let report = report(["", "--seconds 2s", "--seconds 10s"].map(line), has_peers_in_order);
    let tables = report["tables"].as_array().unwrap();
    let peers: Vec<_> = tables.iter().map(|table| table["peer"].as_str().unwrap()).collect();
    assert_eq!(peers, ["rarely", "every-eight", "each-segment"]);
    for table in tables {
        assert_eq!(table["rows"].as_array().unwrap().len(), 3, "{table}");
        assert!(table["saving_percent"].is_f64(), "{table}");
    }
    // Other load changes how often a receiver acknowledges, except for the one that acknowledges every
    // segment.
    assert!(has_peers_in_order(&report) || !permits_verdicts(&report), "{report}");
    let [rarely, every_eight, each] = acks_per_segment(&report);
    assert!(rarely < each && every_eight < each, "{report}");
    assert_eq!(report["statements"].as_array().unwrap().len(), 5);
    for file in report["files"].as_array().unwrap() {
        assert!(fs::read_to_string(file.as_str().unwrap()).unwrap().starts_with("<svg "));
    }
    assert_eq!(report["files"].as_array().unwrap().len(), 3);
}

/// Returns the ACKs per segment of the three receivers, without aggregation.
fn acks_per_segment(report: &Value) -> [f64; 3] {
    [0, 1, 2].map(|table| {
        let row = &report["tables"][table]["rows"][1];
        row["acks_per_segment"]["median"].as_f64().unwrap()
    })
}

/// Returns `true` if each receiver acknowledged about as often as its name demands.
fn has_peers_in_order(report: &Value) -> bool {
    let [rarely, every_eight, each] = acks_per_segment(report);
    rarely < every_eight && every_eight < each && (0.05..0.3).contains(&every_eight)
}
