//! What is known about the transport checksum of a frame.

/// Whether the transport checksum of a frame was verified, and in which form the frame has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChecksumStatus {
    /// Not verified. Software must verify it, unless the user trusts the link.
    #[default]
    Unknown,
    /// Verified by the device, or by software before us.
    Verified,
    /// Partial: the field holds only the folded sum of the pseudo-header. The frame never crossed a
    /// wire, because a local sender left the rest to a device. Its payload needs no check, but the
    /// checksum must be completed before the frame leaves through a device that does not do so.
    Partial {
        /// Where summing starts, in bytes from the start of the frame: the transport header.
        start: u16,
        /// Where the sum is written, in bytes from `start`.
        offset: u16,
    },
}

impl ChecksumStatus {
    /// Whether the payload can be taken as intact without verifying it.
    #[inline]
    #[must_use]
    pub const fn is_trusted(self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// Whether the checksum must still be completed.
    #[inline]
    #[must_use]
    pub const fn is_partial(self) -> bool {
        matches!(self, Self::Partial { .. })
    }
}
