//! Target `oracle`: the engine delivers exactly what a naive reading of the policy says.

use rxo_testkit::promise::matches_the_oracle;
use rxo_testkit::script::Script;

use crate::harness;

/// Runs the script that `data` stands for, and asks the oracle.
///
/// # Panics
/// When they differ.
pub fn run(data: &[u8]) {
    let script = Script::from_bytes(data);
    matches_the_oracle(&script, &harness::run(&script));
}
