//! Target `split`: for any deliveries and any frames of the host, the splitter keeps its guarantees.

use crate::split_harness;

/// Runs the script that `data` encodes.
///
/// # Panics
/// If a guarantee is broken.
pub fn run(data: &[u8]) {
    split_harness::run(data);
}
