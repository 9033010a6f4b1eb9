//! Runs `rxo-lab xen`: counts instructions of a driver domain under valgrind, and of a guest in QEMU.

use std::process::Command;

use serde_json::Value;

fn rxo(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxo-lab"));
    command.args(line.split_whitespace());
    command
}

/// Returns the measurements of a document of results.
fn measured(document: &[u8]) -> Value {
    let mut document: Value = serde_json::from_slice(document).unwrap();
    document["experiments"][0]["measured"].take()
}

pub(crate) fn the_experiment_counts_a_guest() {
    let output = rxo("xen --only throughput --quick --json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report = measured(&output.stdout);
    let rows = |name: &str| report[name].as_array().unwrap().clone();
    let guests = rows("guests");
    let guests: Vec<_> = guests.iter().map(|row| row["system"].as_str().unwrap()).collect();
    assert_eq!((rows("costs").len(), &guests[..]), (8, &["xen", "bo-da", "linux"][..]));
    for row in rows("costs") {
        let is_linear = ["lro", "da", "da4"].iter().any(|name| row["system"] == *name);
        let copies = if is_linear { 2.0 } else { 1.0 };
        assert_eq!(row["copies"].as_f64(), Some(copies), "{row}");
        assert!(row["instructions_a_byte"].as_f64().unwrap() > 0.0, "{row}");
    }
    for row in rows("guests") {
        assert!(row["instructions_a_byte"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["copying_a_byte"].as_f64().unwrap() > 0.0, "{row}");
    }
    let rates = rows("machines");
    let systems: Vec<_> = rates.iter().map(|row| row["system"].as_str().unwrap()).collect();
    assert_eq!(systems, ["linux", "xen", "lro", "bo", "da", "bo-da", "auto"]);
    for row in rates {
        assert!(row["mbit_per_s"].as_f64().unwrap() > 1.0, "{row}");
        let aggregates = row["packets_an_aggregate"].as_f64().unwrap() > 1.0;
        assert_eq!(aggregates, row["system"] != "linux" && row["system"] != "xen", "{row}");
    }
}

/// Two guests behind one switch, and a guest of each system behind a card with requests: each gets its file,
/// and has a cost above 0.
pub(crate) fn the_experiment_has_several_guests() {
    let output = rxo("xen --only guests --quick --json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report = measured(&output.stdout);
    let case = &report["several"][0];
    assert_eq!((&case["guests"], &case["system"]), (&2.into(), &"auto".into()));
    for each in case["each"].as_array().unwrap() {
        assert_eq!(each["is_intact"], true, "{each}");
        assert!(each["instructions_a_byte"].as_f64().unwrap() > 0.0, "{each}");
    }
    assert_eq!(report["requests"][0]["auto_held"], 0, "a lone segment leaves at once");
    let rounds = report["requests"][0]["rounds"].as_array().unwrap();
    let turns = rounds[0].as_array().unwrap();
    let systems: Vec<_> = turns.iter().map(|turn| turn["system"].as_str().unwrap()).collect();
    assert_eq!(rounds.len(), 3);
    assert_eq!(systems, ["linux", "xen", "lro", "da", "xen", "bo", "bo-da", "auto"]);
    let of_turns = turns.iter().map(|turn| &turn["latency"]);
    for latency in [&case["idle"], &case["beside_bulk"]].into_iter().chain(of_turns) {
        let [median, p99] = ["p50_us", "p99_us"].map(|name| latency[name].as_f64().unwrap());
        assert!(0.0 < median && median <= p99, "{latency}");
    }
}

pub(crate) fn the_experiment_names_what_is_missing() {
    let mut command = rxo("xen --only cost --quick --json");
    let output = command.env("PATH", "/nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let last = said.trim_end().lines().last().unwrap();
    assert!(
        last.contains("apt-get install valgrind") && last.contains("qemu-system-x86"),
        "{last}"
    );
}
