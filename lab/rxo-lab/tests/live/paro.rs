//! The PARO experiment at a small scale.

use crate::{Test, experiment, figures};

pub(crate) const TESTS: &[Test] =
    &[("a_live_server_changes_the_way_of_its_acks", acks_of_a_live_server)];

pub(crate) const LONG_TESTS: &[Test] =
    &[("a_server_s_acks_are_counted_in_each_way", acks_are_counted)];

/// Instructions are counted under callgrind on virtual time, so the result does not depend on the machine's
/// load.
fn acks_are_counted() {
    let report = experiment("paro --only requests --quick");
    let costs = report["measured"]["costs"].as_array().unwrap();
    let total = |way: &str| {
        let cost = &costs.iter().find(|cost| cost["way"] == way).unwrap();
        let parts = cost["components"].as_object().unwrap();
        assert_eq!(cost["served"]["again"], 0, "{cost}");
        assert!(cost["acks_a_segment"].as_f64().unwrap() > 0.4, "{cost}");
        parts.values().map(|part| part.as_f64().unwrap()).sum::<f64>()
    };
    let stack = total("stack");
    for way in ["fast-path", "records"] {
        assert!(total(way) < stack, "{way}: {report}");
    }
    // Without optimisation, comparing many words costs as much as the stack; in a release build a third is
    // saved.
    let most = if cfg!(debug_assertions) { 1.1 * stack } else { stack };
    assert!(total("batches") < most, "{report}");
    assert_eq!(report["load"].as_array().unwrap().len(), 0, "nothing is timed: {report}");
    let expected = ["table-1", "figure-1", "figure-4", "figure-ack"];
    assert_eq!(figures(&report), expected);
}

/// Whatever the cost, all ways serve the clients, and no byte is wrong.
fn acks_of_a_live_server() {
    let report = experiment("paro --only live --quick");
    let windows = report["measured"]["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 3, "{report}");
    for (window, way) in windows.iter().zip(["stack", "records", "batches"]) {
        assert_eq!(window["way"], way, "{window}");
    }
}
