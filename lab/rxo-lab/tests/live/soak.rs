//! Runs `rxo-lab soak` for half a minute.

use std::io::{BufRead, BufReader};

use rxo_testbed::Namespace;
use serde_json::Value;

use crate::process::{command, signal};
use crate::{Test, json};

pub(crate) const LONG_TESTS: &[Test] = &[
    ("half_a_minute_of_everything_adds_up_and_nothing_grows", half_a_minute),
    ("a_soak_whose_rxo_is_killed_fails", a_killed_rxo),
];

fn half_a_minute() {
    let found = json("soak --seconds 30s --json");
    let compared = found["compared"].as_array().unwrap();
    assert!(compared.len() > 8, "{found}");
    assert!(compared.iter().all(|one| one["left"] == one["right"]), "{found}");
    let of = |path: &str| found.pointer(path).and_then(Value::as_u64).unwrap();
    for path in ["connections", "tcp_bytes", "requests", "questions", "to_host/received"] {
        assert!(of(&format!("/carried/{path}")) > 0, "{path}: {found}");
    }
    // Memory, descriptors and threads of four processes; on a slow machine there are too few rounds for a
    // verdict.
    let courses = found["courses"].as_array().unwrap();
    assert_eq!(courses.len(), 12, "{found}");
    let judged = courses.iter().filter(|course| course["growth"].is_number()).count();
    eprintln!("{judged} of 12 judged in {} rounds", found["rounds"]);
}

/// The end of a process is noticed and reported with its name, and no other process remains.
fn a_killed_rxo() {
    let namespace = Namespace::new("soak").unwrap();
    let mut soak = command("soak --seconds 60s --json");
    let mut child = namespace.run(|| soak.spawn()).unwrap().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // Waits until the first round is complete.
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("worker"), "{first}");
    let keeper = keeper_below(child.id());
    signal("KILL", crate::process::worker_of(keeper).unwrap());
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said:?}");
    let last = said.last().unwrap();
    assert!(last.contains("rxo run: it ended with code Some(1)"), "{said:?}");
}

/// Returns the child of `soak` that has children of its own: the first process of `rxo run`.
fn keeper_below(soak: u32) -> u32 {
    let children = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = children.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |number: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        parent == Some(soak.to_string().as_str())
    };
    let mut keepers =
        numbers.filter(is_child).filter(|&number| crate::process::worker_of(number).is_some());
    keepers.next().unwrap()
}
