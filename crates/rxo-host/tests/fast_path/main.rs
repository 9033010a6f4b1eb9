//! The hook before the engine: any frames in any order, against a host without it.

mod harness;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_does_the_same_on_both_hosts(data in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        harness::run(&data);
    }
}

#[test]
fn scripts_reach_the_fast_path() {
    // ACKs of all that was sent, each in a batch of its own.
    let script: Vec<u8> = (0..100).flat_map(|n| [WRITE, 255, ACK, 255, n, TURN]).collect();
    let outcome = harness::run(&[&[0], &script[..]].concat());
    assert!(outcome.consumed > 50, "{outcome:?}");
    assert!(outcome.sequences >= 100);
}

/// As in the harness.
const TURN: u8 = 0;
const ACK: u8 = 1;
const WRITE: u8 = 6;
