//! The reasons why a frame is not consumed by the fast path.
//!
//! Separate because it is the list of all reasons, in the order of the checks, with the names of their
//! counters.

use std::fmt;

/// The first check of the fast path that rejected a frame, which then takes the slow path (`docs/fast-path.md`).
/// If flags, options or headers already show that a frame is not a pure ACK, its TCP checksum may not have
/// been verified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackReason {
    /// The fast path for pure ACKs is off, while other modules are on.
    Off,
    /// The frame does not have the length of a pure ACK, is a GSO frame, has a VLAN tag, or is not addressed
    /// to this host.
    Length,
    /// The packet is not TCP over IPv4 or IPv6, is a fragment, has IP options or extension headers, or its
    /// header checksum is wrong.
    Ip,
    /// The TCP checksum of a plain segment is wrong.
    Checksum,
    /// The segment has flags other than ACK, or carries data.
    Flags,
    /// The segment has an option other than the timestamp, or the timestamp is not at its usual offset.
    Options,
    /// No connection has these addresses and ports.
    NoConnection,
    /// The connection is not synchronized yet, or the gate, which checks addresses, refuses packets of its
    /// flow.
    NotSynchronized,
    /// An earlier segment of the flow is held by the engine, or took the slow path in the same batch.
    Order,
    /// Segments wait in the connection's backlog.
    Backlog,
}

impl FallbackReason {
    /// All reasons, in the order of the checks.
    pub const ALL: [Self; 10] = [
        Self::Off,
        Self::Length,
        Self::Ip,
        Self::Checksum,
        Self::Flags,
        Self::Options,
        Self::NoConnection,
        Self::NotSynchronized,
        Self::Order,
        Self::Backlog,
    ];

    /// Returns the name of the reason in totals and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Length => "length",
            Self::Ip => "ip",
            Self::Checksum => "checksum",
            Self::Flags => "flags",
            Self::Options => "options",
            Self::NoConnection => "no-connection",
            Self::NotSynchronized => "not-synchronized",
            Self::Order => "order",
            Self::Backlog => "backlog",
        }
    }
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
