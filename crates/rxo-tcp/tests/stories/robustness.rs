//! Arbitrary scripts: the input of the fuzz targets, as property tests.

use proptest::prelude::*;

use crate::harness::{endless, hostile, pair, twin};

/// Each script begins in the state that it names; otherwise the harness panics.
#[test]
fn every_state_can_be_entered() {
    for state in 0..10 {
        hostile::run(&[0, 0, state]);
        hostile::run(&[0xff, 0, state]);
    }
}

/// A SYN occupies a sequence number, so the text that it carries begins one later.
#[test]
fn text_on_a_syn_begins_behind_it() {
    const SYN_ACK_WITH_TEXT: [u8; 12] = [0, 0x73, 0, 0, 0, 9, 0, 0x12, 0, 8, 0, 0];
    const READ: [u8; 3] = [10, 0, 100];
    hostile::run(&[&[0, 0, 1][..], &SYN_ACK_WITH_TEXT, &READ].concat());
}

/// A FIN retransmitted between two segments carries an acknowledgement, so the echo of the next segment is
/// recorded. The twin that takes both segments together sends that FIN after both.
#[test]
fn a_fin_sent_again_in_between_ends_the_comparison() {
    twin::run(&[
        0x64, 0x62, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0x09, 0x60, 0xa1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xcc, 0x3d,
        0x69, 0x73, 0xa0, 0x99, 0x5d, 0x7c, 0x91, 0x79, 0xbb, 0x0b, 0x58, 0x36, 0x83, 0x5a, 0x22,
        0xcc, 0x99, 0xdd, 0xc1, 0x67, 0x01, 0x0b, 0xb9, 0x35, 0xd6,
    ]);
}

/// Every endless kind of answer is combined with every kind of earlier use.
#[test]
fn every_peer_that_never_finishes_is_bounded() {
    for answer in 0..8 {
        for switches in [0x00, 0x3f] {
            // The uses: written to; written to and shut down; with unread text; unused.
            for used in
                [&[0, 0, 250, 250][..], &[1, 0, 99, 99, 4, 0], &[0, 2, 80, 9, 9], &[0, 1, 0, 0]]
            {
                endless::run(&[&[switches, 0, 0][..], used, &[answer; 3]].concat());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_segments_in_any_state(script in prop::collection::vec(any::<u8>(), 3..900)) {
        hostile::run(&script);
    }

    #[test]
    fn peers_that_never_finish_are_bounded(script in prop::collection::vec(any::<u8>(), 8..120)) {
        endless::run(&script);
    }

    #[test]
    fn any_network_delivers_what_was_written(
        script in prop::collection::vec(any::<u8>(), 5..600),
    ) {
        pair::run(&script);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn fast_ways_are_the_steps(script in prop::collection::vec(any::<u8>(), 3..900)) {
        twin::run(&script);
    }
}

/// The timers start anew with the segment that opens the window, even if one that closed it came in the same
/// arrival.
#[test]
fn a_window_that_closes_and_opens_within_an_arrival_restarts_the_timers() {
    twin::run(&[
        54, 1, 43, 154, 3, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 0, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 98, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 8, 180, 202, 16, 43, 154, 3, 0, 0, 0, 0, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 98, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 215, 185, 28, 7,
    ]);
}

/// Sends `RXO_TWIN_SEGMENTS` segments through the twins, in scripts derived from `RXO_TWIN_SEED`. A failing
/// script is named by its seed.
#[test]
fn twins_by_number() {
    let setting = |name: &str, default: u64| {
        let number = std::env::var(name).ok();
        number.map_or(default, |number| number.parse().expect("a number of segments, or a seed"))
    };
    let (most, first) =
        (setting("RXO_TWIN_SEGMENTS", FEW_SEGMENTS), setting("RXO_TWIN_SEED", FIRST_SEED));
    let (mut segments, mut seed) = (0, first);
    while segments < most {
        let named = Named(seed);
        segments += twin::run(&long_script(seed));
        core::mem::forget(named);
        seed += 1;
    }
    println!("{segments} segments, seeds {first} to {}", seed - 1);
}

/// Prints the seed that reproduces a failure.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        eprintln!("to see it again: RXO_TWIN_SEED={} RXO_TWIN_SEGMENTS=1", self.0);
    }
}

/// Returns bytes derived from `seed` (splitmix64).
fn long_script(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    core::iter::repeat_with(word).take(SCRIPT_WORDS).flat_map(u64::to_be_bytes).collect()
}

/// The number of segments in an ordinary run of all tests.
const FEW_SEGMENTS: u64 = 20_000;
const FIRST_SEED: u64 = 1;
const SCRIPT_WORDS: usize = 150;
