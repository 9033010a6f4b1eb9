//! The calibration, short: it measures, and what it saves is read by the analysis.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rxo_testbed::Namespace;
use serde_json::Value;

use crate::Test;
use crate::process::run_within;
use crate::report::permits_verdicts;

pub(crate) const TESTS: &[Test] =
    &[("the_calibration_finds_costs_and_saves_them", the_calibration_finds_costs_and_saves_them)];

fn the_calibration_finds_costs_and_saves_them() {
    let namespace = Namespace::new("calibrate").unwrap();
    let file = std::env::temp_dir().join(format!("rxo-live-costs-{}.json", std::process::id()));
    let (result, said) = calibrated(&namespace, &file);
    if permits_verdicts(&result) {
        let saved: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(result, saved);
    } else {
        assert!(!file.exists(), "{said}");
        // A line before it may say that the build is a slow one.
        let said = said.lines().last().unwrap();
        let begin = format!("rxo: --save {}: the figures were not saved: Other", file.display());
        assert!(said.starts_with(&begin) && said.contains("no verdict"), "{said}");
    }
    let cost = |name: &str| result["costs"][name].as_f64().unwrap();
    assert!(cost("packet_ns") > 0.0 && cost("coalesce_ns") > 0.0, "{result}");
    assert!(cost("byte_ns") >= 0.0 && cost("device_ns") >= 0.0, "{result}");
    let rows = result["measurements"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    // The settings did what they are there for: one packet a delivery, and many.
    let k = |row: usize| rows[row]["packets_per_delivery"].as_f64().unwrap();
    assert!(k(0) < 1.5 && k(4) > 2.0 * k(0), "{rows:?}");
    assert!(result["machine"]["cores"].as_u64().unwrap() > 0);
}

/// What it measures, and what it says to that. On a busy machine it may need longer; then it says so, and
/// gets longer.
fn calibrated(namespace: &Namespace, file: &Path) -> (Value, String) {
    let mut said = String::new();
    for seconds in [3, 9, 27] {
        let line = format!("calibrate --json --seconds {seconds} --save {}", file.display());
        let output = run_within(namespace, &line, Duration::from_secs(180));
        said = String::from_utf8_lossy(&output.stderr).into_owned();
        // 3: the machine was too busy to save what was measured.
        if matches!(output.status.code(), Some(0 | 3)) {
            return (serde_json::from_slice(&output.stdout).unwrap(), said);
        }
        assert!(said.contains("a larger --seconds"), "{said}");
    }
    panic!("{said}");
}
