//! A short demo: every path works, and the JSON is complete.

use rxo_testbed::Namespace;
use serde_json::Value;

use crate::Test;
use crate::process::{Busy, run_within};
use crate::report::{LONG, assert_sentence, report};

pub(crate) const TESTS: &[Test] = &[
    ("the_demo_measures_every_path", the_demo_measures_every_path),
    ("a_busy_machine_permits_no_verdict", no_verdict_beside_other_work),
];

const PATHS: [&str; 6] =
    ["kernel-gro-off", "kernel-gro-on", "write-per-frame", "none", "rxo", "floor"];

/// Returns the report of a demo with `flags`, repeated with more time until every row `is_enough`.
pub(crate) fn demo(flags: &str, is_enough: impl Fn(&Value) -> bool) -> Value {
    let line = |seconds| format!("demo --json --rounds 1 --seconds {seconds} {flags}");
    report(["0.2s", "2s", "10s"].map(line), |report| {
        report["rows"].as_array().unwrap().iter().all(&is_enough)
    })
}

fn the_demo_measures_every_path() {
    let figures = ["gbit_per_s", "cpu_s_per_gb", "segments_per_aggregate", "rr_per_s", "rr_p50_us"];
    let report = demo("--connections 4 --floor", |row| {
        figures.iter().all(|figure| row[figure].as_f64().is_some_and(|value| value > 0.0))
    });
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["path"].as_str().unwrap()).collect::<Vec<_>>(), PATHS);
    for row in rows {
        assert_eq!((&row["connections"], &row["hash_ok"]), (&4.into(), &true.into()), "{row}");
        for figure in figures {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{figure}: {row}");
        }
        for count in ["ring_drops", "wire_drops", "sink_drops", "retransmissions"] {
            assert!(row[count].is_u64(), "{count}: {row}");
        }
    }
    let per_aggregate = |index: usize| rows[index]["segments_per_aggregate"].as_f64().unwrap();
    assert!(
        per_aggregate(5) > 2.0
            && per_aggregate(4) > 2.0
            && per_aggregate(3) < 1.01
            && per_aggregate(2) < 1.01
    );
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
    assert_sentence(&report);
}

/// Returns a process that keeps a third of a core busy.
fn a_third_busy() -> Busy {
    let work = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
    Busy::start("sh", &["-c", &format!("ulimit -t 120; while :; do {work}; sleep 0.03; done")])
}

fn no_verdict_beside_other_work() {
    let namespace = Namespace::new("demo").unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    let busy: Vec<Busy> = (0..cores).map(|_| a_third_busy()).collect();
    let report = demo("", |_| true);
    // The sender's side has fewer rows and the same wording.
    let output = run_within(&namespace, "demo --reverse --rounds 1 --seconds 0.2s", LONG);
    drop(busy);
    if output.status.success() {
        let text = String::from_utf8(output.stdout).unwrap();
        let last = text.trim_end().rsplit("\n\n").next().unwrap().replace('\n', " ");
        assert!(last.starts_with("Other processes used ") && last.contains("no verdict"), "{text}");
    }
    assert!(report["load"]["others_percent"].as_f64().unwrap() >= 10.0, "{report}");
    assert_eq!(
        (&report["load"]["permits_verdict"], &report["sentence"]),
        (&false.into(), &Value::Null)
    );
    assert_eq!(report["rows"].as_array().unwrap().len(), 5, "figures are printed all the same");
}
