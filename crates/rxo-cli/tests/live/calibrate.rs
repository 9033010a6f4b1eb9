//! A short calibration: it measures, and the analysis reads the file that it saves.

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
        // An earlier line may warn that the build is not optimised.
        let said = said.lines().last().unwrap();
        let begin = format!("rxo: --save {}: the figures were not saved: Other", file.display());
        assert!(said.starts_with(&begin) && said.contains("no verdict"), "{said}");
    }
    let cost = |name: &str| result["costs"][name].as_f64().unwrap();
    assert!(cost("packet_ns") > 0.0 && cost("coalesce_ns") > 0.0, "{result}");
    assert!(
        ["byte_ns", "device_ns", "wake_ns", "cold_ns"].iter().all(|name| cost(name) >= 0.0),
        "{result}"
    );
    let rows = result["measurements"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    // The settings had their effect: one packet a delivery, or many.
    let k = |row: usize| rows[row]["packets_per_delivery"].as_f64().unwrap();
    assert!(k(0) < 1.5 && k(4) > 2.0 * k(0), "{rows:?}");
    // The kernel's own path is measured where it polls in a thread.
    if let Some(rows) = result["host_basis"]["measurements"].as_array() {
        let cost = |name: &str| result["host"][name].as_f64().unwrap();
        assert!(cost("packet_ns") > 0.0, "{result}");
        assert!(["device_ns", "wake_ns", "cold_ns"].iter().all(|name| cost(name) >= 0.0));
        let k = |row: usize| rows[row]["packets_per_delivery"].as_f64().unwrap();
        assert_eq!(rows.len(), 11);
        assert!(k(0) > 2.0, "the kernel merges: {rows:?}");
        assert!(rows.iter().all(|row| row["packets_per_wake"].as_f64().is_none_or(|it| it > 0.0)));
    } else {
        assert!(result["host"].is_null() && result["costs"]["wake_ns"] == 0.0, "{result}");
    }
    assert!(result["machine"]["cores"].as_u64().unwrap() > 0);
}

/// Calibrates, and returns the report and standard error. On a busy machine the command reports that it needs
/// longer; it is then repeated with more time.
fn calibrated(namespace: &Namespace, file: &Path) -> (Value, String) {
    let mut said = String::new();
    for seconds in [6, 10, 30] {
        let line = format!("calibrate --json --seconds {seconds} --save {}", file.display());
        let output = run_within(namespace, &line, Duration::from_secs(180));
        said = String::from_utf8_lossy(&output.stderr).into_owned();
        // Exit code 3: the machine was too busy to save the measurements.
        if matches!(output.status.code(), Some(0 | 3)) {
            return (serde_json::from_slice(&output.stdout).unwrap(), said);
        }
        assert!(said.contains("a larger --seconds"), "{said}");
    }
    panic!("{said}");
}
