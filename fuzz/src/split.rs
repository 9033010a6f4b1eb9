//! Target `split`: whatever is delivered and whatever the host sends, what the splitter inserts keeps
//! its promises.

use crate::split_harness;

/// Runs the script that `data` stands for.
///
/// # Panics
/// When a promise does not hold.
pub fn run(data: &[u8]) {
    split_harness::run(data);
}
