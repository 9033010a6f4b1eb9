//! The calibration, short: it measures, and what it saves is read by the analysis.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rxo_lab::Namespace;
use serde_json::Value;

use crate::Test;
use crate::process::run_within;

pub(crate) const TESTS: &[Test] =
    &[("the_calibration_finds_costs_and_saves_them", the_calibration_finds_costs_and_saves_them)];

fn the_calibration_finds_costs_and_saves_them() {
    let namespace = Namespace::new("calibrate").unwrap();
    let file = std::env::temp_dir().join(format!("rxo-live-costs-{}.json", std::process::id()));
    let result = calibrated(&namespace, &file);
    let saved: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(result, saved);
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

/// What it measures; on a busy machine it says that it needs longer, and gets longer.
fn calibrated(namespace: &Namespace, file: &Path) -> Value {
    let mut said = String::new();
    for seconds in [3, 9, 27] {
        let line = format!("calibrate --json --seconds {seconds} --save {}", file.display());
        let output = run_within(namespace, &line, Duration::from_secs(180));
        if output.status.success() {
            return serde_json::from_slice(&output.stdout).unwrap();
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("a larger --seconds"), "{said}");
    }
    panic!("{said}");
}
