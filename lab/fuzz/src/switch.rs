//! A guarded guest of the switch sends anything, and a naive neighbour believes what reaches it.
//!
//! Runs the test harness of the switch, which its property test runs too.

#[path = "../../../crates/rxo/tests/switch/harness.rs"]
mod harness;

/// The bytes select headers, tags, fragments and contents of frames, and the times between them.
///
/// # Panics
/// If the neighbour believes something that the guest may not say, or a frame goes where it may not.
pub fn run(data: &[u8]) {
    crate::operations::count(harness::run(data));
}
