//! What is known about a frame's transport checksum.

/// Who vouches for a frame's transport checksum, and in which form it stands in the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChecksumStatus {
    /// Nobody has looked: software must verify it, or the user trusts the link.
    #[default]
    Unknown,
    /// The device, or software before us, found it right.
    Verified,
    /// The field holds only a seed: the folded pseudo-header sum. The frame never
    /// crossed a wire (a local sender left the rest to a device), so its payload needs no check,
    /// but it must be completed before it leaves through a device that will not do so.
    Partial {
        /// Where summing starts, in bytes from the frame's first byte: the transport header.
        start: u16,
        /// Where the sum goes, in bytes after `start`.
        offset: u16,
    },
}

impl ChecksumStatus {
    /// Whether the payload may be taken for intact without reading it.
    #[inline]
    #[must_use]
    pub const fn is_trusted(self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// Whether the checksum in the frame still has to be completed.
    #[inline]
    #[must_use]
    pub const fn is_partial(self) -> bool {
        matches!(self, Self::Partial { .. })
    }
}
