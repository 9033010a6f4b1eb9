//! Scripts as strategies for property tests.

use proptest::array::{uniform6, uniform8};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any};

use super::Script;
use super::setup::POLICIES;

/// Configures property tests with `cases` cases each, or the number in the environment variable
/// `PROPTEST_CASES`. A failure is printed, not saved in a file.
#[must_use]
pub fn property(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Makes scripts of up to `most` events, for every policy. Scripts shrink event by event.
pub fn scripts(most: usize) -> impl Strategy<Value = Script> {
    bytes(most).prop_map(|bytes| Script::from_bytes(&bytes))
}

/// Makes scripts of up to `most` events for the policy `policy`.
///
/// # Panics
/// If there is no such policy.
pub fn scripts_for(policy: &'static str, most: usize) -> impl Strategy<Value = Script> {
    let index = POLICIES.iter().position(|known| *known == policy);
    let index = index.expect("a policy of the design") as u8;
    bytes(most).prop_map(move |mut bytes| {
        bytes[0] = index;
        Script::from_bytes(&bytes)
    })
}

/// Makes scripts of pure ACKs with up to `most` events, mostly for policies that aggregate ACKs.
pub fn ack_scripts(most: usize) -> impl Strategy<Value = Script> {
    bytes(most).prop_map(|bytes| Script::acks_from_bytes(&bytes))
}

/// Makes the configuration bytes and up to `most` events.
fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    (uniform8(any::<u8>()), vec(uniform6(any::<u8>()), 0..most))
        .prop_map(|(head, events)| [&head[..], &events.concat()].concat())
}
