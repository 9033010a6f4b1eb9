//! The fast path with any frames in any order, compared with a host without it.

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
    // ACKs of everything that was sent, each in its own batch.
    let script: Vec<u8> = (0..100).flat_map(|n| [WRITE, 255, ACK, 255, n, TURN]).collect();
    let outcome = harness::run(&[&[0], &script[..]].concat());
    assert!(outcome.consumed > 50, "{outcome:?}");
    assert!(outcome.sequences >= 100);
}

/// With every setting, ACKs of each kind of frame are consumed.
#[test]
fn every_setting_reaches_the_fast_path() {
    let script: Vec<u8> = (0..8).flat_map(|n| [WRITE, 99, ACK, 255, n, TURN]).collect();
    for settings in 0..=255 {
        let outcome = harness::run(&[&[settings], &script[..]].concat());
        assert!(outcome.consumed + outcome.waited > 4, "{settings:#b}: {outcome:?}");
    }
}

/// An application with unread data holds the lock, so ACKs wait in the ring.
#[test]
fn acks_wait_in_the_ring_while_the_lock_is_held() {
    let script = [WRITE, 200, TEXT, 20, 0, TURN, ACK, 60, 9, ACK, 255, 9, TURN].repeat(20);
    for settings in [LOCKED, LOCKED | 0b11, LOCKED | 0b1_1001] {
        let outcome = harness::run(&[&[settings], &script[..]].concat());
        assert!(outcome.waited > 5, "{settings:#b}: {outcome:?}");
    }
}

/// Segments wait in the backlog. The ACKs in the second half of the batch must not overtake these segments.
#[test]
fn acks_stay_behind_a_backlog() {
    let script =
        [WRITE, 200, TEXT, 20, 0, TURN, TEXT, 9, 0, ACK, 60, 9, ACK, 255, 9, ACK, 255, 9, TURN];
    let outcome = harness::run(&[&[LOCKED], &script.repeat(20)[..]].concat());
    assert!(outcome.behind > 5, "{outcome:?}");
}

/// Without SACK the ninth ACK goes to the backlog, and later ACKs must not overtake it.
#[test]
fn acks_stay_behind_those_that_find_the_ring_full() {
    let acks = (0..12).flat_map(|n| [ACK, 20 * n, n]);
    let script: Vec<u8> =
        [WRITE, 255, TEXT, 20, 0, TURN].into_iter().chain(acks).chain([TURN]).collect();
    let outcome = harness::run(&[&[LOCKED | NO_SACK], &script.repeat(20)[..]].concat());
    assert!(outcome.waited > 20 && outcome.behind > 5, "{outcome:?}");
}

/// An ACK in the next batch arrives while the engine holds data, which it must not overtake.
#[test]
fn acks_stay_behind_what_is_held() {
    let script = [WRITE, 200, TURN, TEXT, 20, 0, TURN, ACK, 60, 9, TURN].repeat(20);
    let behind =
        [0, HELD].map(|settings| harness::run(&[&[settings], &script[..]].concat()).behind);
    assert_eq!(behind[0], 0);
    assert!(behind[1] > 15, "{behind:?}");
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

/// The third ACK of the second run comes when the list of records is full; the window of the last ACK counts.
#[test]
fn what_was_expected_before_another_flow_took_the_spot_is_not_expected_behind_it() {
    let script = [
        &[1, WRITE, 255, WRITE | SHARES, 255, TURN, ACK, 40, 9, ACK, 80, 9][..],
        &[ACK | SHARES, 60, 9, ACK, 120, 9, ACK, 160, 9, ACK, 160, 99, TURN],
    ];
    assert_eq!(harness::run(&script.concat()).consumed, 6);
}

/// The opcodes of the harness.
const TURN: u8 = 0;
const ACK: u8 = 1;
const TEXT: u8 = 3;
const WRITE: u8 = 6;
/// The flag that selects the connection which shares a slot with the first.
const SHARES: u8 = 16;
/// Settings of the harness.
const NO_SACK: u8 = 2;
const HELD: u8 = 32;
const LOCKED: u8 = 64;
