//! Targets `tcp-segments` and `tcp-pair`: a connection in any state gets any segments, and does by its fast
//! ways what it does step by step, and ends whatever a peer answers; two connections over a network that does anything lose nothing.
//!
//! What they do is the endpoint's own test harness, so that its property tests do the same.

#[path = "../../crates/rxo-tcp/tests/harness/mod.rs"]
mod harness;

/// The first bytes choose settings and a state, the others segments, calls and time.
///
/// # Panics
/// When what is read or sent is not what it should be, or nothing ends.
pub fn segments(data: &[u8]) {
    harness::hostile::run(data);
    harness::endless::run(data);
    harness::twin::run(data);
}

/// The first bytes choose settings, the others what both ends and the network do.
///
/// # Panics
/// When one end reads what the other did not write, or not all of it, or nothing ends.
pub fn pair(data: &[u8]) {
    harness::pair::run(data);
}
