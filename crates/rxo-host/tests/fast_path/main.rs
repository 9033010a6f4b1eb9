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

#[test]
fn flows_that_share_a_spot_begin_new_runs() {
    let script = [
        &[1, WRITE, 255, WRITE | SHARES, 255, TURN][..],
        &[ACK, 60, 9, ACK | SHARES, 60, 9, ACK, 120, 9, TURN],
    ];
    let outcome = harness::run(&script.concat());
    assert_eq!((outcome.consumed, outcome.calls), (3, 3), "{outcome:?}");
}

/// The third ACK of the second run comes when there is no room for an expected one; the window of the last counts.
#[test]
fn what_was_expected_before_another_flow_took_the_spot_is_not_expected_behind_it() {
    let script = [
        &[1, WRITE, 255, WRITE | SHARES, 255, TURN, ACK, 40, 9, ACK, 80, 9][..],
        &[ACK | SHARES, 60, 9, ACK, 120, 9, ACK, 160, 9, ACK, 160, 99, TURN],
    ];
    assert_eq!(harness::run(&script.concat()).consumed, 6);
}

/// As in the harness.
const TURN: u8 = 0;
const ACK: u8 = 1;
const WRITE: u8 = 6;
/// The connection that shares a spot with the first.
const SHARES: u8 = 16;
