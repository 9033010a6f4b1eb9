//! The flags of a note: one byte for the whole note, and one byte for each segment.

use core::ops::BitOr;

/// Properties that all segments of an aggregate have in common, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(pub(crate) u8);

impl Shape {
    /// The payloads of all segments but the last have one size, which the note contains once. If the bit is
    /// clear, the note contains the size of each segment.
    pub(crate) const REGULAR: Self = Self(1);
    /// The IPv4 ID increases by 1 from one segment to the next. If the bit is clear, the IPv4 ID stays equal.
    pub(crate) const COUNTING_ID: Self = Self(2);
    /// Times in the note are in microseconds. If the bit is clear, times are in nanoseconds.
    pub(crate) const MICROS: Self = Self(4);

    /// The link header ends with the headers of a tunnel. Their offsets follow the lengths of the headers.
    pub(crate) const TUNNEL: Self = Self(8);
    /// The outer IPv4 ID increases by 1 from one segment to the next. If the bit is clear, the outer IPv4 ID
    /// stays equal.
    pub(crate) const COUNTING_OUTER_ID: Self = Self(16);

    const ALL: u8 = 31;

    pub(crate) const fn is_known(self) -> bool {
        self.0 & !Self::ALL == 0
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns these properties, and in addition the properties `other` if `set` is `true`.
    pub(crate) const fn with(self, other: Self, set: bool) -> Self {
        if set { Self(self.0 | other.0) } else { self }
    }

    /// Returns the unit of times in the note, in nanoseconds.
    pub(crate) const fn unit_ns(self) -> i64 {
        if self.has(Self::MICROS) { 1_000 } else { 1 }
    }
}

/// The properties in which a segment differs from its prediction. Their values follow in the note, in the
/// order of the bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differs(pub(crate) u8);

impl Differs {
    /// The arrival time differs: the note contains the time to the next segment, whose prediction is 0.
    pub(crate) const TIME: Self = Self(1);
    /// The position differs: the note contains the number of records before the next segment, whose
    /// prediction is 0.
    pub(crate) const PLACE: Self = Self(2);
    /// The link header, including the headers of a tunnel, differs: the note contains its length and bytes.
    pub(crate) const LINK: Self = Self(4);
    /// The IP and TCP headers differ: the note contains a patch of the predicted headers.
    pub(crate) const HEADER: Self = Self(8);
    /// The IPv4 header checksum differs: the note contains its two bytes.
    pub(crate) const IP_CHECKSUM: Self = Self(16);
    /// The TCP checksum differs: the note contains its two bytes.
    pub(crate) const TCP_CHECKSUM: Self = Self(32);
    /// The segment has padding, bytes after the IP packet: the note contains its length and bytes.
    pub(crate) const PADDING: Self = Self(64);
    /// The length on the wire differs from the captured length: the note contains the difference.
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
