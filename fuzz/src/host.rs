//! Target `host-link`: any frames, names and times at the link under a host's TCP.
//!
//! It runs the link's own test harness, which its property tests run too.

#[path = "../../crates/rxo-host/tests/link/harness.rs"]
mod harness;

/// The first byte selects the kind of link; the others are frames, questions and time.
///
/// # Panics
/// If a sent frame is unreadable, a limit is exceeded, or something never ends.
pub fn link(data: &[u8]) {
    harness::run(data);
}
