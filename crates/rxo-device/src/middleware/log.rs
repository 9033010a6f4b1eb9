//! Where traced sources and sinks write what passes them.
//!
//! It is a trait so that a device needs no capture format: `Tracer` in the crate `rxo`
//! implements it with a pcapng file.

use rxo_frame::{Gather, Instant};

/// Which way a packet goes, seen from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the machine: a source gave it.
    In,
    /// From the machine: a sink took it.
    Out,
}

/// A log of packets.
///
/// Logging cannot fail the traffic: an implementation counts what it cannot write, and reports it
/// once with [`PacketLog::take_notice`].
pub trait PacketLog {
    /// Writes one packet that passed in `direction` at `at`.
    fn log<'a, G: Gather<'a>>(&self, packet: G, direction: Direction, at: Instant);

    /// One line that the user should see, once; `None` if there is nothing new to say.
    fn take_notice(&self) -> Option<String>;
}

/// The log of middleware that never traces. It has no values.
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
