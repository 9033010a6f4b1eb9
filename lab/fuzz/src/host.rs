//! Target `host-link`: any frames, addresses and times at the link under a host's TCP. Target
//! `host-fast-path`: any frames in any order at the hook before the engine, compared with a host without that
//! hook.
//!
//! Both run a test harness of `rxo-host`, which its property tests run too.

#[path = "../../../crates/rxo-host/tests/link/harness.rs"]
mod harness;

#[path = "../../../crates/rxo-host/tests/fast_path/harness.rs"]
mod twins;

/// Runs the link. The first byte selects its kind; the others encode frames, requests and time.
///
/// # Panics
/// If a sent frame is unreadable, a limit is exceeded, or something never ends.
pub fn link(data: &[u8]) {
    harness::run(data);
}

/// Runs two hosts, with and without the fast path. The first byte selects settings of TCP; the others encode
/// frames, batches, time and calls.
///
/// # Panics
/// If the hosts behave differently.
pub fn fast_path(data: &[u8]) {
    crate::operations::count(twins::run(data).sequences);
}
