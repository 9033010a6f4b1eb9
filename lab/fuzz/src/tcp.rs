//! Targets `tcp-segments` and `tcp-pair`. In the first, a connection in any state receives any segments; its
//! fast paths must match its slow path, and it must end whatever the peer answers. In the second, two
//! connections over any network must lose nothing.
//!
//! They run the endpoint's own test harness, which its property tests run too.

#[path = "../../../crates/rxo-tcp/tests/harness/mod.rs"]
pub(crate) mod harness;

/// Runs one connection. The first bytes select settings and a state; the remaining bytes encode segments,
/// calls and time.
///
/// # Panics
/// If read or sent data is wrong, or the connection never ends.
pub fn segments(data: &[u8]) {
    harness::hostile::run(data);
    harness::endless::run(data);
    harness::twin::run(data);
}

/// Runs two connections. The first bytes select settings; the others encode the actions of both ends and the
/// network.
///
/// # Panics
/// If one end does not read exactly what the other wrote, or a connection never ends.
pub fn pair(data: &[u8]) {
    harness::pair::run(data);
}
