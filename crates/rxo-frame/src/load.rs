//! The load of a receiver: the work that it has not processed yet.
//!
//! Separate because a sink reports it and the engine reads it, and neither depends on the other.

/// The load of a receiver: the number of packets that its sink has delivered and that it has not processed
/// yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of packets that the receiver has not processed yet. A sink may count ring entries instead.
    /// Only zero means the same for every sink: the receiver has processed everything.
    pub unread: u32,
}

impl Load {
    /// Returns `true` if the receiver has processed all packets.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        self.unread == 0
    }
}
