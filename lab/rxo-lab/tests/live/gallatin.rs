//! Gallatin's experiment at a small scale.

use serde_json::Value;

use crate::report::report;
use crate::{Test, figures, measured, status, was_idle};

pub(crate) const TESTS: &[Test] =
    &[("the_gallatin_experiment_is_repeated", the_gallatin_experiment_is_repeated)];

fn the_gallatin_experiment_is_repeated() {
    let line = |seconds| format!("gallatin --only transfers --quick {seconds} --json");
    let report = report(["", "--seconds 2s", "--seconds 10s"].map(line), has_peers_in_order);
    let transfers = measured(&report)["transfers"].as_array().unwrap();
    assert_eq!(transfers.len(), 3 * 3, "{report}");
    assert!(transfers.iter().all(|transfer| transfer["is_intact"] == true), "{report}");
    // Other load changes how often a receiver acknowledges, except for the one that acknowledges every
    // segment.
    assert!(has_peers_in_order(&report) || !was_idle(&report), "{report}");
    let [rarely, every_eight, each] = acks_per_segment(&report);
    assert!(rarely < each && every_eight < each, "{report}");
    let experiment = &report["experiments"][0];
    assert_eq!(figures(experiment), ["figure-cost", "figure-rate", "figure-deliveries"]);
    for id in ["gallatin.table1.live", "gallatin.table2.rate", "gallatin.more-acks.live"] {
        assert_ne!(status(experiment, id), "not-repeated", "{id}");
    }
    assert_eq!(status(experiment, "gallatin.table1.cpu"), "not-repeated");
}

/// Returns the ACKs per segment of the three receivers, without aggregation.
fn acks_per_segment(report: &Value) -> [f64; 3] {
    ["rarely", "every-eight", "each-segment"].map(|peer| {
        let mut transfers = measured(report)["transfers"].as_array().unwrap().iter();
        let is_of = |it: &&Value| it["peer"] == peer && it["way"] == "no-aggregation";
        transfers.find(is_of).unwrap()["acks_per_segment"]["median"].as_f64().unwrap()
    })
}

/// Returns `true` if each receiver acknowledged about as often as its name demands.
fn has_peers_in_order(report: &Value) -> bool {
    let [rarely, every_eight, each] = acks_per_segment(report);
    rarely < every_eight && every_eight < each && (0.05..0.3).contains(&every_eight)
}
