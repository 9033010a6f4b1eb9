//! Scripts of pure ACKs.

use rxo_testkit::Random;

/// The configurations: policy, rule for pure ACKs (with the permission to cover SACK lists), and the limit of
/// a delivery.
const SETUPS: [(&str, [u8; 3]); 6] = [
    ("single", [8, 2, 0]),
    ("single-few", [8, 2, 0x30]),
    ("superset", [8, 0x22, 0]),
    ("record", [1, 0, 0]),
    ("record-gro", [0, 6, 3]),
    ("bypass", [7, 0, 0]),
];
/// The kinds of events other than a plain advance, each once.
const ODD: [u8; 20] =
    [18, 22, 25, 29, 30, 31, 37, 40, 41, 44, 47, 48, 49, 50, 51, 52, 53, 58, 59, 60];
const ADVANCE: u8 = 0;
const POLL: u8 = 53;

/// Returns scripts for each configuration with each kind of event between advancing ACKs, and random scripts.
pub(super) fn scripts() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (name, setup) in SETUPS {
        for kind in ODD {
            files.push((format!("{name}-{kind}"), between(setup, kind)));
        }
    }
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let bytes = (0..8 + 6 * 150).map(|_| random.next() as u8).collect();
        files.push((format!("random-{seed}"), bytes));
    }
    files
}

/// Returns a script with two ACKs of two flows, an event, and another ACK, for many values, with occasional
/// polls.
fn between([policy, acks, limits]: [u8; 3], kind: u8) -> Vec<u8> {
    let mut bytes = vec![policy, acks, limits, 0, 0, 0, 3, 1];
    for value in 0..16 {
        for flow in [0, 0, 1, 1] {
            bytes.extend([ADVANCE, flow, 0, 0, value, 1]);
        }
        bytes.extend([kind, value % 2, value, value / 2, value * 5, 40]);
        bytes.extend([ADVANCE, value % 2, 0, 0, value, 0]);
        if value % 4 == 3 {
            bytes.extend([POLL, 0, 0, 0, 0, 0]);
        }
    }
    bytes
}
