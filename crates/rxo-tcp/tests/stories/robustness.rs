//! Scripts that nobody chose: what the fuzz targets do, as property tests.

use proptest::prelude::*;

use crate::harness::{hostile, pair, twin};

/// A script begins in the state it names, or the harness says so.
#[test]
fn every_state_can_be_entered() {
    for state in 0..10 {
        hostile::run(&[0, 0, state]);
        hostile::run(&[0xff, 0, state]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_segments_in_any_state(script in prop::collection::vec(any::<u8>(), 3..900)) {
        hostile::run(&script);
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
