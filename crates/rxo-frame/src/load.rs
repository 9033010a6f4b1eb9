//! The load of a receiver: the work that it has not processed yet.
//!
//! This module is separate because a sink reports the load and the engine reads it, but they do not depend on
//! each other.

/// The load of a receiver: the number of packets that its sink has delivered but the receiver has not processed
/// yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of packets that the receiver has not processed yet. A sink may count ring entries instead of
    /// packets. For every sink, zero means that the receiver has processed all packets.
    pub unread: u32,
}

impl Load {
    /// Returns `true` if the receiver has processed all packets.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        self.unread == 0
    }
}
