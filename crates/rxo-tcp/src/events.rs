//! Events of a connection that an application may react to.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// A set of events of a connection.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Events(u8);

impl Events {
    /// The connection is open: the handshake is complete.
    pub const CONNECTED: Self = Self(1);
    /// Data from the peer has arrived.
    pub const READABLE: Self = Self(2);
    /// The send buffer may have free space, because the peer has acknowledged data or unsent data was sent.
    pub const WRITABLE: Self = Self(4);
    /// The peer has closed its direction; its data can still be read.
    pub const PEER_DONE: Self = Self(8);
    /// The connection is closed; [`State::Closed`](crate::State::Closed) contains the reason.
    pub const CLOSED: Self = Self(16);
    /// The peer has not answered three retransmissions (R1 of RFC 9293, section 3.8.3); another route may
    /// help.
    pub const STALLED: Self = Self(32);
    /// A router reports that the peer is unreachable, perhaps temporarily (RFC 9293, section 3.9.2.2).
    pub const UNREACHABLE: Self = Self(64);
    /// [`Connection::path_mtu`](crate::Connection::path_mtu) has changed; an owner may reuse it for other
    /// connections.
    pub const PATH_CHANGED: Self = Self(128);

    /// Returns `true` if all events of `other` are in this set of events.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns `true` if any event of `other` is in this set of events.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the union of this set of events with `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns `true` if the set contains no event.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Events {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Events {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = [
            "CONNECTED",
            "READABLE",
            "WRITABLE",
            "PEER_DONE",
            "CLOSED",
            "STALLED",
            "UNREACHABLE",
            "PATH_CHANGED",
        ];
        let has = |(bit, _): &(usize, &&str)| self.0 >> bit & 1 == 1;
        f.debug_set().entries(NAMES.iter().enumerate().filter(has).map(|(_, name)| name)).finish()
    }
}
