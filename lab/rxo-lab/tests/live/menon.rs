//! `rxo-lab menon` at a small scale: its experiments run, draw figures and form sentences.

use std::process::Command;

use rxo_testbed::Namespace;
use serde_json::Value;

use crate::process::run_within;
use crate::report::{LONG, report};
use crate::{Test, figures, measured, status, was_idle};

pub(crate) const TESTS: &[Test] = &[
    ("what_coalescing_does_to_those_who_count_acks", those_who_count_acks),
    ("acks_experiments_that_cannot_be_are_refused", experiments_that_cannot_be),
    ("what_the_optimizations_gain_a_receiving_host", receiving_host),
    ("what_they_gain_a_host_on_a_card_that_is_asked", asked_on_a_card),
];

pub(crate) const LONG_TESTS: &[Test] = &[("what_they_gain_a_host_on_a_card", on_a_card)];

fn those_who_count_acks() {
    let namespace = Namespace::new("repro").unwrap();
    let output = run_within(&namespace, "menon acks --quick --json", LONG);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let median = |row: &Value, name: &str| row[name]["median"].as_f64().unwrap();
    let rows = |name: &str| measured(&report)[name].as_array().unwrap().clone();
    for row in rows("split") {
        assert_eq!(row["network"], "delay");
        // On a busy machine little is sent in the short time.
        assert!(median(&row, "mbit_per_s") >= 0.0, "{row}");
        assert!(row["window"].as_array().unwrap().len() > 2, "{row}");
        let is_coalesced = row["treatment"] != "none";
        assert_eq!(median(&row, "per_delivery") > 1.5, is_coalesced, "{row}");
    }
    for sender in ["counting", "cubic"] {
        let of = |treatment: &str| {
            let rows = rows("split").into_iter();
            let mut rows = rows.filter(|row| row["sender"] == sender);
            median(&rows.find(|row| row["treatment"] == treatment).unwrap(), "acks_per_segment")
        };
        assert!(of("coalesced") < of("none"), "{sender}: {report}");
        assert!(of("coalesced") < of("split"), "{sender}: {report}");
    }
    let keep = rows("keep");
    assert_eq!(keep.len(), 3);
    assert!(median(&keep[0], "per_delivery") < 1.1 && median(&keep[2], "per_delivery") > 1.5);
    let experiment = &report["experiments"][0];
    let verdict = status(experiment, "menon-acks.coalescing-takes");
    assert_eq!(verdict == "no-verdict", !was_idle(&report), "{report}");
    let expected = ["figure-window-counting", "figure-window-cubic", "figure-keep-every"];
    assert_eq!(figures(experiment), expected);
}

fn experiments_that_cannot_be() {
    let rows = [
        ("acks --rounds 0", "--rounds 0: choose 1 to 100"),
        ("--rounds 0", "--rounds 0: choose 1 to 100"),
        ("--only split", "--only split: choose profile, limit, connections, exchange"),
        ("acks --only limit", "--only limit: choose split, keep-every"),
        ("card --rounds 0", "--rounds 0: choose 1 to 100"),
        (
            "card --only split",
            "--only split: choose profile, threads, saturation, limit, connections, exchange, linux, prefetch",
        ),
        ("--rate 100", "unexpected argument '--rate'"),
        ("--quick acks", "the subcommand 'acks' cannot be used with"),
    ];
    let namespace = Namespace::new("repro").unwrap();
    for (flags, message) in rows {
        let output = run_within(&namespace, &format!("menon {flags}"), LONG);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message) && said.lines().count() == 1, "{said}");
    }
}

/// Returns the report on the receiving host. On a busy machine a row may have so little traffic that its
/// first segments dominate; the run is then repeated with more time.
fn received() -> Value {
    let line = |seconds| format!("menon --quick --seconds {seconds} --json");
    report(["0.2s", "1s", "5s"].map(line), |report| {
        measured(report)["bulk"].as_array().unwrap().iter().all(is_as_set)
    })
}

/// Returns `true` if the row was measured, and its ACKs and deliveries match the configuration of its stack.
fn is_as_set(row: &Value) -> bool {
    let median = |name: &str| row[name]["median"].as_f64().unwrap();
    let deliveries = match row["stack"]["aggregation_limit"].as_u64() {
        None | Some(1) => 0.0..1.5,
        Some(limit) => 1.5..limit as f64 * 1.5,
    };
    row["breakdown_ns"]["rx"].as_f64().is_some_and(|ns| ns > 0.0)
        // One ACK for two segments, whatever the aggregation.
        && (0.3..0.7).contains(&median("acks_per_packet"))
        && deliveries.contains(&median("packets_per_delivery"))
}

fn receiving_host() {
    let report = received();
    let rows = measured(&report)["bulk"].as_array().unwrap();
    assert_eq!((rows.len(), measured(&report)["exchange"].as_array().unwrap().len()), (15, 2));
    for row in rows {
        let median = |name: &str| row[name]["median"].as_f64().unwrap();
        assert!(median("scaled_gbit_per_s") > 0.0 && median("gbit_per_s") > 0.0, "{row}");
        assert!(is_as_set(row), "{row}");
        let breakdown = row["breakdown_ns"].as_object().unwrap();
        let total: f64 = breakdown.values().map(|ns| ns.as_f64().unwrap()).sum();
        assert!((total / median("ns_per_packet") - 1.0).abs() < 0.01, "{row}");
    }
    let experiment = &report["experiments"][0];
    for figure in experiment["figures"].as_array().unwrap() {
        assert!(!figure["claims"].as_array().unwrap().is_empty(), "{figure}");
    }
    let numbers = ["3", "7", "8", "9", "10", "11", "12"].map(|number| format!("figure-{number}"));
    assert_eq!(figures(experiment), [&numbers[..], &["table-1".to_owned()]].concat());
}

/// Returns the report of `parts` on a card, counted by valgrind; `None` without valgrind, when the command
/// must fail with one line that names the package.
fn report_of_card(parts: &str) -> Option<Value> {
    let namespace = Namespace::new("repro").unwrap();
    let line = format!("menon card --quick --only {parts} --json");
    let output = run_within(&namespace, &line, LONG);
    let said = String::from_utf8_lossy(&output.stderr);
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert!(!output.status.success() && said.contains("apt-get install valgrind"), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let timed = status(&report["experiments"][0], "menon-card.aim.time");
    assert!(timed == "not-repeated" || (timed == "no-verdict") != was_idle(&report), "{report}");
    Some(report)
}

/// Each exchange is one frame in each direction, because acknowledgements are piggybacked.
fn assert_requests(requests: &[Value]) {
    assert_eq!(requests.len(), 2);
    for row in requests {
        let handed_over = row["handed_over_per_packet"]["median"].as_f64().unwrap();
        assert_eq!(row["traffic"], "requests", "{row}");
        assert!((0.8..1.3).contains(&handed_over), "{row}");
    }
}

fn asked_on_a_card() {
    let Some(report) = report_of_card("exchange") else { return };
    assert_requests(measured(&report)["rows"].as_array().unwrap());
}

fn on_a_card() {
    let Some(report) = report_of_card("profile,exchange") else { return };
    let rows = measured(&report)["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 5 + 2);
    let (rows, requests) = rows.split_at(5);
    let median = |row: usize, name: &str| rows[row][name]["median"].as_f64().unwrap();
    let [single, original, aggregation, optimized, by_card] = [0, 1, 2, 3, 4];
    assert_eq!(
        (rows[single]["poll_frames"].as_u64(), rows[original]["poll_frames"].as_u64()),
        (Some(1), Some(256))
    );
    for (row, found) in rows.iter().enumerate() {
        assert!((0.3..0.7).contains(&median(row, "acks_per_packet")), "{found}");
        let parts: f64 =
            found["breakdown"].as_object().unwrap().values().map(|n| n.as_f64().unwrap()).sum();
        assert!((parts / median(row, "per_packet") - 1.0).abs() < 1e-6, "{found}");
        assert!(median(row, "scaled_gbit_per_s") > 0.0, "{found}");
    }
    for row in [single, original] {
        assert!(median(row, "packets_per_delivery") < 1.1, "{}", rows[row]);
        assert!(median(row, "handed_over_per_packet") > 0.3, "each ACK is a packet: {}", rows[row]);
    }
    // However few frames a starved sender provides for a poll, some are aggregated, and some ACKs are sent as
    // templates.
    for row in [aggregation, optimized, by_card] {
        let per_delivery = |row| median(row, "packets_per_delivery");
        assert!(per_delivery(row) > per_delivery(original), "{}", rows[row]);
    }
    let [plain, expanded, by_card_packets] =
        [aggregation, optimized, by_card].map(|row| median(row, "handed_over_per_packet"));
    assert!(expanded > 0.3 && by_card_packets < plain, "{report}");
    let expansion = |row: usize| rows[row]["breakdown"]["driver, expansion"].as_f64().unwrap();
    assert_eq!([original, aggregation, by_card].map(expansion), [0.0; 3], "{report}");
    assert!(expansion(optimized) > 0.0, "templates are the receiver's to expand: {report}");
    assert_requests(requests);
    let expected = ["figure-7-on-a-card", "figure-8-on-a-card", "table-1-on-a-card"];
    assert_eq!(figures(&report["experiments"][0]), expected);
}
