//! Tests of the false beliefs that a guarded guest can cause in its neighbours.

use proptest::collection::vec;
use proptest::prelude::{any, proptest};
use rxo_testkit::Random;
use rxo_testkit::script::property;

use crate::harness::{self, believer::Belief};

proptest! {
    #![proptest_config(property(300))]

    #[test]
    fn a_guarded_guest_forges_nothing(data in vec(any::<u8>(), 0..2_000)) {
        harness::run(&data);
    }
}

fn data() -> Vec<u8> {
    let mut random = Random::new(1);
    (0..200_000).map(|_| random.next() as u8).collect()
}

/// Without a guard the harness finds each kind of lie; a guard does not refuse more than necessary.
#[test]
fn without_a_guard_each_lie_is_believed() {
    let (_, lies) = harness::lies(&data(), None);
    let kinds: [fn(&Belief) -> bool; 5] = [
        |belief| matches!(belief, Belief::Source(_)),
        |belief| matches!(belief, Belief::Neighbour(..)),
        |belief| matches!(belief, Belief::Asker(_)),
        |belief| matches!(belief, Belief::Router),
        |belief| matches!(belief, Belief::Dhcp),
    ];
    for (n, is_kind) in kinds.into_iter().enumerate() {
        let count = lies.iter().filter(|(belief, _)| is_kind(belief)).count();
        assert!(count > 0, "no lies of kind {n}");
    }
    let passed = harness::run(&data());
    assert!(passed > 500, "{passed} frames passed");
}
