//! Target `engine`: the engine's promises, also with little memory.

use rxo_testkit::promise::check_promises;
use rxo_testkit::script::Script;

use crate::harness;

/// Runs the script that `data` encodes, with memory for few frames.
///
/// # Panics
/// If a promise is broken.
pub fn run(data: &[u8]) {
    let mut script = Script::from_bytes(data);
    script.setup.batch_frames = 1 + script.setup.seed as usize % 16;
    check_promises(&script, &harness::run(&script));
}
