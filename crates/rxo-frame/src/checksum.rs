//! The status of a frame's transport checksum.

/// The status of a frame's transport checksum: verified or not, complete or partial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChecksumStatus {
    /// The checksum was not verified. Software must verify it, unless the user trusts the link.
    #[default]
    Unknown,
    /// The checksum was verified already, by the device or by software.
    Verified,
    /// The checksum is partial: its field contains only the folded sum of the pseudo-header. The frame never
    /// crossed a network, because a local sender left the completion of the checksum to a device. Its payload
    /// need not be verified, but the checksum must be completed before the frame is sent by a device that does
    /// not complete checksums.
    Partial {
        /// The offset at which summing starts, in bytes from the start of the frame: the transport header.
        start: u16,
        /// The offset at which the sum is written, in bytes from `start`.
        offset: u16,
    },
}

impl ChecksumStatus {
    /// Returns `true` if the payload need not be verified. A partial checksum may instead belong to an inner
    /// packet; [`ChecksumStatus::covers_payload`] excludes this case.
    #[inline]
    #[must_use]
    pub const fn is_trusted(self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// Returns `true` if the payload after the transport header at offset `transport` need not be verified: the
    /// status is `Verified`, or is `Partial` for the checksum of this header. `field` is the offset of the
    /// checksum in the transport header.
    ///
    /// # Examples
    /// ```
    /// use rxo_frame::ChecksumStatus;
    ///
    /// let inner = ChecksumStatus::Partial { start: 84, offset: 16 };
    /// assert!(inner.covers_payload(84, 16) && !inner.covers_payload(34, 6));
    /// ```
    #[inline(always)]
    #[must_use]
    pub const fn covers_payload(self, transport: usize, field: u16) -> bool {
        match self {
            Self::Unknown => false,
            Self::Verified => true,
            Self::Partial { start, offset } => start as usize == transport && offset == field,
        }
    }

    /// Returns `true` if the checksum is partial, but is not the checksum of the transport header at offset
    /// `transport`. Such a checksum belongs to an inner packet, so its completion will change the payload.
    /// `field` is the offset as in [`ChecksumStatus::covers_payload`].
    #[inline(always)]
    #[must_use]
    pub const fn is_elsewhere(self, transport: usize, field: u16) -> bool {
        self.is_partial() && !self.covers_payload(transport, field)
    }

    /// Returns `true` if the checksum is partial, so that it must still be completed.
    #[inline]
    #[must_use]
    pub const fn is_partial(self) -> bool {
        matches!(self, Self::Partial { .. })
    }
}
