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
    /// Whether the payload can be taken as intact without verifying it, if a partial checksum is known to be the
    /// packet's own.
    #[inline]
    #[must_use]
    pub const fn is_trusted(self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// Whether it says that the payload behind the transport header at `transport` is intact, whose checksum is in the
    /// `field`-th byte of that header: it is verified, or it is this one that is partial.
    ///
    /// # Examples
    /// ```
    /// use rxo_frame::ChecksumStatus;
    ///
    /// let inner = ChecksumStatus::Partial { start: 84, offset: 16 };
    /// assert!(inner.vouches_for(84, 16) && !inner.vouches_for(34, 6));
    /// ```
    #[inline(always)]
    #[must_use]
    pub const fn vouches_for(self, transport: usize, field: u16) -> bool {
        match self {
            Self::Unknown => false,
            Self::Verified => true,
            Self::Partial { start, offset } => start as usize == transport && offset == field,
        }
    }

    /// Whether a checksum is partial, but not that of the transport header at `transport`: one of a packet inside, which
    /// will change the payload when it is completed. `field` as in [`ChecksumStatus::vouches_for`].
    #[inline(always)]
    #[must_use]
    pub const fn is_elsewhere(self, transport: usize, field: u16) -> bool {
        self.is_partial() && !self.vouches_for(transport, field)
    }

    /// Whether the checksum must still be completed.
    #[inline]
    #[must_use]
    pub const fn is_partial(self) -> bool {
        matches!(self, Self::Partial { .. })
    }
}
