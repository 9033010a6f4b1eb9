//! Target `host-link`: any frames, names and times at the link under a host's TCP. Target `host-fast-path`: any frames in
//! any order at the hook before the engine, against a host without it.
//!
//! Both run a test harness of `rxo-host`, which its property tests run too.

#[path = "../../../crates/rxo-host/tests/link/harness.rs"]
mod harness;

#[path = "../../../crates/rxo-host/tests/fast_path/harness.rs"]
mod twins;

/// The first byte selects the kind of link; the others are frames, questions and time.
///
/// # Panics
/// If a sent frame is unreadable, a limit is exceeded, or something never ends.
pub fn link(data: &[u8]) {
    harness::run(data);
}

/// The first byte selects settings of TCP; the others are frames, batches, time, and what the application does.
///
/// # Panics
/// If both hosts do not do the same.
pub fn fast_path(data: &[u8]) {
    crate::operations::count(twins::run(data).sequences);
}
