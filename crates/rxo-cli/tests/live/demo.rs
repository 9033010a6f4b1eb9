//! The demo, short: every path works, and the JSON has what it must.

use rxo_lab::Namespace;
use serde_json::Value;

use crate::Test;
use crate::process::run;

pub(crate) const TESTS: &[Test] = &[("the_demo_measures_five_paths", the_demo_measures_five_paths)];

const PATHS: [&str; 5] = ["kernel-gro-off", "kernel-gro-on", "write-per-frame", "none", "rxo"];

fn the_demo_measures_five_paths() {
    let namespace = Namespace::new("demo").unwrap();
    let output = run(&namespace, "demo --json --rounds 1 --seconds 0.2s --connections 4");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["path"].as_str().unwrap()).collect::<Vec<_>>(), PATHS);
    for row in rows {
        assert_eq!((&row["connections"], &row["hash_ok"]), (&4.into(), &true.into()), "{row}");
        for figure in
            ["gbit_per_s", "cpu_s_per_gb", "segments_per_aggregate", "rr_per_s", "rr_p50_us"]
        {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{figure}: {row}");
        }
        for count in ["ring_drops", "wire_drops", "sink_drops", "retransmissions"] {
            assert!(row[count].is_u64(), "{count}: {row}");
        }
    }
    let per_aggregate = |index: usize| rows[index]["segments_per_aggregate"].as_f64().unwrap();
    assert!(per_aggregate(4) > 2.0 && per_aggregate(3) < 1.01 && per_aggregate(2) < 1.01);
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
    assert!(report["sentence"].as_str().unwrap().ends_with('.'));
}
