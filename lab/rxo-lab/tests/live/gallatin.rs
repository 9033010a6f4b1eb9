//! The experiment of Gallatin's patch, small.

use std::fs;

use crate::Test;
use crate::report::{Scratch, report};

pub(crate) const TESTS: &[Test] =
    &[("the_gallatin_experiment_is_repeated", the_gallatin_experiment_is_repeated)];

fn the_gallatin_experiment_is_repeated() {
    let scratch = Scratch::new("gallatin");
    let out = scratch.file("figures").display().to_string();
    let line = |seconds| format!("gallatin --quick {seconds} --out {out} --json");
    let report = report(["", "--seconds 2s", "--seconds 10s"].map(line), |_| true);
    let tables = report["tables"].as_array().unwrap();
    let peers: Vec<_> = tables.iter().map(|table| table["peer"].as_str().unwrap()).collect();
    assert_eq!(peers, ["rarely", "every-eight", "each-segment"]);
    for table in tables {
        assert_eq!(table["rows"].as_array().unwrap().len(), 3, "{table}");
        assert!(table["saving_percent"].is_f64(), "{table}");
    }
    // The receivers acknowledge as their names say.
    let rate =
        |table: usize| tables[table]["rows"][1]["acks_per_segment"]["median"].as_f64().unwrap();
    assert!(rate(0) < rate(1) && rate(1) < rate(2), "{report}");
    assert!(rate(1) > 0.05 && rate(1) < 0.3, "{report}");
    assert_eq!(report["statements"].as_array().unwrap().len(), 5);
    for file in report["files"].as_array().unwrap() {
        assert!(fs::read_to_string(file.as_str().unwrap()).unwrap().starts_with("<svg "));
    }
    assert_eq!(report["files"].as_array().unwrap().len(), 3);
}
