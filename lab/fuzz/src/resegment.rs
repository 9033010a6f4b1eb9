//! Target `resegment`: segmenting an aggregate by `gso_size` gives the original packets.

use rxo_testkit::promise::{aggregates_are_right, aggregates_come_apart_again};
use rxo_testkit::script::Script;

use crate::harness;

/// Runs the script that `data` encodes under `linux-gro`, and segments the aggregates.
///
/// # Panics
/// If a packet differs from the original.
pub fn run(data: &[u8]) {
    let mut script = Script::from_bytes(data);
    script.setup.policy = "linux-gro";
    let observed = harness::run(&script);
    aggregates_are_right(&script, &observed);
    aggregates_come_apart_again(&script, &observed);
}
