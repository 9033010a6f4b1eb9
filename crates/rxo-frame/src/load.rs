//! How busy a receiver is.
//!
//! Separate because a sink reports it and the engine reads it, and neither knows the other.

/// The packets that a sink has delivered and its receiver has not taken yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Number of packets, or of ring entries where the sink counts those. Only zero means the same for
    /// every sink: the receiver has taken everything.
    pub unread: u32,
}

impl Load {
    /// Whether the receiver has taken everything it was given.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        self.unread == 0
    }
}
