//! Target `acks`: the aggregation of pure ACKs, and the information that a sender gets from them.

use rxo_testkit::promise::{check_promises, matches_the_oracle};
use rxo_testkit::script::Script;
use rxo_testkit::sender::senders_agree;

use crate::harness;

/// Runs the script of acknowledgements that `data` encodes: once with memory for all frames, compared with
/// the oracle, and once with little memory.
///
/// # Panics
/// If a promise is broken, the oracle disagrees, or the states of two senders differ.
pub fn run(data: &[u8]) {
    let mut script = Script::acks_from_bytes(data);
    let observed = harness::run(&script);
    matches_the_oracle(&script, &observed);
    check_promises(&script, &observed);
    senders_agree(&script, &observed);
    script.setup.batch_frames = 1 + script.setup.seed as usize % 16;
    let observed = harness::run(&script);
    check_promises(&script, &observed);
    senders_agree(&script, &observed);
}
