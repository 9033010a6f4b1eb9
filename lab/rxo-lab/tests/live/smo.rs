//! `rxo-lab smo` at a small scale: with counted instructions, and in namespaces. Virtual time and the knee
//! are tested beside their code.

use std::process::Command;

use rxo_testbed::Namespace;
use serde_json::Value;

use crate::process::run_within;
use crate::report::LONG;
use crate::{Test, figures, measured, status};

pub(crate) const LONG_TESTS: &[Test] =
    &[("smo_counts_and_sends_to_namespaces", counts_and_namespaces)];

/// Without valgrind the command fails with one line that names the package.
fn counts_and_namespaces() {
    let namespace = Namespace::new("repro").unwrap();
    let output = run_within(&namespace, "smo --only cost,real --quick --json", LONG);
    let said = String::from_utf8_lossy(&output.stderr);
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert!(!output.status.success() && said.contains("apt-get install valgrind"), "{said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let measured = measured(&report);
    costs(measured);
    let real = measured["real"].as_array().unwrap();
    assert_eq!(real.len(), 2);
    let is_right = |cast: &Value| cast["right"] == cast["receivers"];
    assert!(real.iter().all(is_right), "every copy in namespaces is the file: {real:?}");
    hardship(measured);
    let experiment = &report["experiments"][0];
    let expected = ["figure-6", "figure-6-by-receivers", "figure-5-in-namespaces"];
    assert_eq!(figures(experiment), expected);
    assert_ne!(status(experiment, "smo.aim.hardship.fast"), "not-repeated");
}

/// An ACK costs less on the fast path, which must consume every ACK.
fn costs(report: &Value) {
    let costs = report["costs"].as_array().unwrap();
    assert_eq!(costs.len(), 6);
    for three in costs.chunks(3) {
        let [stack, mechanism, fast] = [0, 1, 2].map(|place| &three[place]);
        for (cost, way, consumed) in
            [(stack, "stack", 0.0), (mechanism, "mechanism", 1.0), (fast, "fast", 1.0)]
        {
            let found = (&cost["way"], &cost["consumed"]);
            assert_eq!(found, (&way.into(), &consumed.into()));
        }
        let ack = |cost: &Value| cost["ack"].as_f64().unwrap();
        assert!(ack(fast) < ack(mechanism) && ack(mechanism) < ack(stack), "{three:?}");
        for cost in [stack, mechanism, fast] {
            let parts = cost["parts"].as_object().unwrap();
            let sum: f64 = parts.values().map(|part| part.as_f64().unwrap()).sum();
            assert!((sum / ack(cost) - 1.0).abs() < 1e-6, "{cost}");
        }
    }
}

/// Of ten receivers one is killed, and one stopped for a while: nine get the file, and the sender reports
/// that.
fn hardship(report: &Value) {
    let casts = report["hardship"].as_array().unwrap();
    assert_eq!(casts.len(), 2);
    for cast in casts {
        let counts = ["right", "joined", "exit_code"].map(|name| cast[name].as_u64());
        assert_eq!(counts, [Some(9), Some(10), Some(1)], "{cast}");
        let failed = cast["failed"][0].as_str().unwrap();
        assert!(failed.starts_with("ejected"), "{failed}");
        assert!(cast["lost"].as_u64().unwrap() > 0, "{cast}");
    }
}
