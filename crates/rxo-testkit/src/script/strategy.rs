//! Scripts as a strategy of property tests.

use proptest::array::{uniform6, uniform8};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

use super::Script;
use super::setup::POLICIES;

/// Scripts of up to `most` events, for every policy. They shrink event by event.
pub fn scripts(most: usize) -> impl Strategy<Value = Script> {
    (uniform8(any::<u8>()), vec(uniform6(any::<u8>()), 0..most))
        .prop_map(|(head, events)| Script::from_bytes(&[&head[..], &events.concat()].concat()))
}

/// The same for the policy of this name.
///
/// # Panics
/// When the design has none of this name.
pub fn scripts_for(policy: &'static str, most: usize) -> impl Strategy<Value = Script> {
    assert!(POLICIES.contains(&policy), "the design has no policy '{policy}'");
    scripts(most).prop_map(move |mut script| {
        script.setup.policy = policy;
        script
    })
}
