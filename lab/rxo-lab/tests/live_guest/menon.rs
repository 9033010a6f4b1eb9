//! Runs `rxo-lab menon card --only linux`: a guest's own stack behind a driver domain under valgrind.

use std::process::Command;

use serde_json::Value;

pub(crate) fn a_linux_guest_gains_by_aggregates() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxo-lab"));
    command.args("menon card --only linux --quick --json".split(' '));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |feed: &str| {
        let all = report["experiments"][0]["measured"]["linux"].as_array().unwrap();
        all.iter().find(|cost| cost["feed"] == feed).unwrap().clone()
    };
    let number = |cost: &Value, name: &str| cost[name].as_f64().unwrap();
    let [plain, aggregates, split, own_gro] = ["plain", "aggregates", "split", "own-gro"].map(of);
    for cost in [&plain, &own_gro] {
        assert!(number(cost, "packets_per_delivery") < 1.1, "{cost}");
    }
    for cost in [&aggregates, &split] {
        assert!(number(cost, "packets_per_delivery") > 2.0, "{cost}");
        assert!(number(cost, "guest_per_byte") < number(&plain, "guest_per_byte"), "{cost}");
    }
    // The guest acknowledges aggregates; if they are split before it, its peer receives as many ACKs as
    // without aggregation.
    let acks = |cost: &Value| number(cost, "acks_per_packet");
    assert!(acks(&aggregates) < acks(&split) && acks(&split) > 0.3, "{report}");
    // This build has no line tables, which are needed to separate the domain's categories.
    for cost in [&plain, &aggregates, &split, &own_gro] {
        assert!(number(cost, "domain_per_byte") > 0.0, "{cost}");
        assert!(number(&cost["domain"], "per-byte") > 0.0, "copies have names: {cost}");
    }
    for part in ["tcp rx", "tcp tx", "netfront", "buffer", "non-proto", "per-byte"] {
        assert!(number(&split["guest"], part) > 0.0, "{part}: {split}");
    }
    // Packets arrive in real time.
    let experiment = &report["experiments"][0];
    let turns = experiment["load"].as_array().unwrap();
    let is_idle = turns.iter().all(|turn| turn["permits_verdict"] == true);
    let claims = experiment["claims"].as_array().unwrap();
    let guest = claims.iter().find(|claim| claim["id"] == "menon-card.aim.guest").unwrap();
    assert_eq!(guest["status"] == "no-verdict", !is_idle, "{guest}");
}
