//! Target `host-link`: any frames, names and times at the link under a host's TCP.
//!
//! What it does is the link's own test harness, so that its property tests do the same.

#[path = "../../crates/rxo-host/tests/link/harness.rs"]
mod harness;

/// The first byte chooses the kind of link, the others frames, questions and time.
///
/// # Panics
/// When what leaves cannot be read, more is remembered than there is room for, or nothing ends.
pub fn link(data: &[u8]) {
    harness::run(data);
}
