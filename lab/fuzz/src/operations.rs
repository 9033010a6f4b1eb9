//! Counts the operations of targets whose inputs are scripts: libFuzzer counts inputs only.

use std::sync::atomic::{AtomicU64, Ordering};

const MILLION: u64 = 1_000_000;

/// Adds the operations of one input. Prints a line for each million.
pub(crate) fn count(operations: u64) {
    static ALL: AtomicU64 = AtomicU64::new(0);
    let before = ALL.fetch_add(operations, Ordering::Relaxed);
    let millions = (before + operations) / MILLION;
    if millions > before / MILLION {
        eprintln!("{millions} million operations");
    }
}
