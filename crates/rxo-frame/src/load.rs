//! The load of a receiver.
//!
//! Separate because a sink reports it and the engine reads it, and neither depends on the other.

/// The number of packets that a sink has delivered and its receiver has not processed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of packets, or of ring entries for a sink that counts those. Only zero means the same for
    /// every sink: the receiver has processed everything.
    pub unread: u32,
}

impl Load {
    /// Returns `true` if the receiver has processed everything.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        self.unread == 0
    }
}
