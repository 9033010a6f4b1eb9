//! Target `oracle`: the engine delivers exactly what the naive oracle computes from the policy.

use rxo_testkit::promise::matches_the_oracle;
use rxo_testkit::script::Script;

use crate::harness;

/// Runs the script that `data` encodes, and compares the result with the oracle.
///
/// # Panics
/// If they differ.
pub fn run(data: &[u8]) {
    let script = Script::from_bytes(data);
    matches_the_oracle(&script, &harness::run(&script));
}
