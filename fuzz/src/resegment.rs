//! Target `resegment`: an aggregate cut again by `gso_size` gives the original packets.

use rxo_testkit::promise::{aggregates_are_right, aggregates_come_apart_again};
use rxo_testkit::script::Script;

use crate::harness;

/// Runs the script that `data` stands for under `linux-gro`, and cuts what comes out.
///
/// # Panics
/// When a packet differs from the one that came.
pub fn run(data: &[u8]) {
    let mut script = Script::from_bytes(data);
    script.setup.policy = "linux-gro";
    let observed = harness::run(&script);
    aggregates_are_right(&script, &observed);
    aggregates_come_apart_again(&script, &observed);
}
