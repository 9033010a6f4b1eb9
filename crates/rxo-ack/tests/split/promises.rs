//! The promises hold for any deliveries and any frames of the host.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::harness;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_script_keeps_the_promises(bytes in vec(any::<u8>(), 0..900)) {
        harness::run(&bytes);
    }
}

#[test]
fn scripts_reach_what_they_are_for() {
    let mut state = 1_u32;
    let mut inserted = 0;
    for _ in 0..50 {
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let bytes: Vec<_> = std::iter::repeat_with(next).take(900).collect();
        inserted += harness::run(&bytes).inserted;
    }
    assert!(inserted > 500, "{inserted}");
}
