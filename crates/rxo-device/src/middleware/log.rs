//! The log interface of traced sources and sinks.
//!
//! The interface is a trait, so that this crate does not depend on a capture format. `Tracer` in the crate
//! `rxo` implements the trait with a pcapng file.

use rxo_frame::{Gather, Instant};

/// The direction of a packet, seen from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The packet goes towards the machine: a source received it.
    In,
    /// The packet comes from the machine: a sink sent it.
    Out,
}

/// A log of the packets that pass one point.
///
/// Logging never stops the traffic. An implementation counts the packets that it cannot write, and reports this
/// once with [`PacketLog::take_notice`].
pub trait PacketLog {
    /// Writes one packet, which passed in `direction` at time `at`.
    fn log<'a, G: Gather<'a>>(&self, packet: G, direction: Direction, at: Instant);

    /// Returns the next notice for the user, as one line; each notice is returned only once. `None` if there is
    /// none.
    fn take_notice(&self) -> Option<String>;
}

/// The packet log of middleware that never logs. The type has no values.
#[derive(Clone, Debug)]
pub enum NoLog {}

impl PacketLog for NoLog {
    fn log<'a, G: Gather<'a>>(&self, _: G, _: Direction, _: Instant) {
        match *self {}
    }

    fn take_notice(&self) -> Option<String> {
        match *self {}
    }
}
