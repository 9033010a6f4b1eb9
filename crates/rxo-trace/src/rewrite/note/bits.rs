//! The flags of a note: one byte for the whole, one for each segment.

use core::ops::BitOr;

/// What holds for all segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(pub(crate) u8);

impl Shape {
    /// All payloads but the last have one size, which is written; otherwise each is.
    pub(crate) const REGULAR: Self = Self(1);
    /// The IPv4 ID counts up from one segment to the next; otherwise it stays.
    pub(crate) const COUNTING_ID: Self = Self(2);
    /// Times are in microseconds; otherwise in nanoseconds.
    pub(crate) const MICROS: Self = Self(4);

    const ALL: u8 = 7;

    pub(crate) const fn is_known(self) -> bool {
        self.0 & !Self::ALL == 0
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These bits and, if `set`, `other`.
    pub(crate) const fn with(self, other: Self, set: bool) -> Self {
        if set { Self(self.0 | other.0) } else { self }
    }

    /// The unit of times, in nanoseconds.
    pub(crate) const fn unit_ns(self) -> i64 {
        if self.has(Self::MICROS) { 1_000 } else { 1 }
    }
}

/// What of a segment is not as predicted, and therefore follows, in the order of the bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differs(pub(crate) u8);

impl Differs {
    /// Arrival: time to the segment after it. As predicted when 0.
    pub(crate) const TIME: Self = Self(1);
    /// Place: records between it and the segment after it. As predicted when none.
    pub(crate) const PLACE: Self = Self(2);
    /// The link header: length and bytes.
    pub(crate) const LINK: Self = Self(4);
    /// IP and TCP header: a patch.
    pub(crate) const HEADER: Self = Self(8);
    /// The IPv4 header checksum: two bytes.
    pub(crate) const IP_CHECKSUM: Self = Self(16);
    /// The TCP checksum: two bytes.
    pub(crate) const TCP_CHECKSUM: Self = Self(32);
    /// What follows the IP packet: length and bytes.
    pub(crate) const PADDING: Self = Self(64);
    /// The length on the wire is not the captured one: by how much.
    pub(crate) const ORIGINAL_BYTES: Self = Self(128);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Differs {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
