//! Why a frame is not consumed.
//!
//! Separate because it is the list of all reasons, in the order in which they are checked, and what the totals are
//! named after.

use std::fmt;

/// Why a frame that was looked at takes the ordinary way, by the first check that said no (`docs/host.md`). If flags,
/// options or headers already show that a frame is no pure ACK, its TCP checksum may be left to the ordinary way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackReason {
    /// The module for pure ACKs is off; others look.
    Off,
    /// The frame does not have the length of a pure ACK, is a GSO frame, has a VLAN tag, or is for another
    /// station.
    Length,
    /// It is neither IPv4 nor IPv6 with TCP, is a fragment, has options or extension headers, or its header
    /// checksum is wrong.
    Ip,
    /// The TCP checksum of what else looks like a plain segment is wrong.
    Checksum,
    /// There are other flags than ACK, or text.
    Flags,
    /// There is an option other than the timestamp, or the timestamp is not in its usual place.
    Options,
    /// No connection has these addresses and ports.
    NoConnection,
    /// The connection is not open yet, or its addresses may not pass the gate.
    NotSynchronized,
    /// Something earlier of the flow is held by the engine, or stands before it in the batch.
    Order,
    /// Segments wait in the connection's backlog.
    Backlog,
}

impl FallbackReason {
    /// Every reason, in the order of the checks.
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

    /// Its name in totals and in JSON.
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
