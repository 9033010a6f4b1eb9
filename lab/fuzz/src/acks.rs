//! Target `acks`: which pure ACKs are delivered together, and what a sender learns from them.

use rxo_testkit::promise::{check_promises, matches_the_oracle};
use rxo_testkit::script::Script;
use rxo_testkit::sender::senders_agree;

use crate::harness;

/// Runs the script of acknowledgements that `data` encodes: once with room for all frames, compared
/// with the oracle, and once with room for few.
///
/// # Panics
/// If a promise is broken, the oracle disagrees, or two senders know different things.
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
