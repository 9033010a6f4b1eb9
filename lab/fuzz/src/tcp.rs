//! Targets `tcp-segments` and `tcp-pair`. In the first, a connection in any state gets any
//! segments; its fast
//! paths do what its steps do, and it ends whatever the peer answers. In the second, two
//! connections over any network lose nothing.
//!
//! They run the endpoint's own test harness, which its property tests run too.

#[path = "../../../crates/rxo-tcp/tests/harness/mod.rs"]
pub(crate) mod harness;

/// The first bytes select settings and a state; the others are segments, calls and time.
///
/// # Panics
/// If what is read or sent is wrong, or something never ends.
pub fn segments(data: &[u8]) {
    harness::hostile::run(data);
    harness::endless::run(data);
    harness::twin::run(data);
}

/// The first bytes select settings; the others are what both ends and the network do.
///
/// # Panics
/// If one end reads what the other did not write, or not all of it, or something never ends.
pub fn pair(data: &[u8]) {
    harness::pair::run(data);
}
