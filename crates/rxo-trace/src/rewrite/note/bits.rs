//! The flags of a note: one byte for the note, one for each segment.

use core::ops::BitOr;

/// Properties that all segments of an aggregate have in common, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(pub(crate) u8);

impl Shape {
    /// Set if the payloads of all segments but the last have one size: the note then contains this size once. If the
    /// bit is clear, the note contains the size of each segment.
    pub(crate) const REGULAR: Self = Self(1);
    /// The IPv4 ID counts up from one segment to the next; otherwise it stays equal.
    pub(crate) const COUNTING_ID: Self = Self(2);
    /// Times in the note are in microseconds; otherwise they are in nanoseconds.
    pub(crate) const MICROS: Self = Self(4);

    /// The link header ends with the headers of a tunnel. Their offsets follow the lengths of the headers.
    pub(crate) const TUNNEL: Self = Self(8);
    /// The outer IPv4 ID counts up from one segment to the next; otherwise it stays equal.
    pub(crate) const COUNTING_OUTER_ID: Self = Self(16);

    const ALL: u8 = 31;

    pub(crate) const fn is_known(self) -> bool {
        self.0 & !Self::ALL == 0
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns these properties, with `other` if `set` is `true`.
    pub(crate) const fn with(self, other: Self, set: bool) -> Self {
        if set { Self(self.0 | other.0) } else { self }
    }

    /// Returns the unit of times in the note, in nanoseconds.
    pub(crate) const fn unit_ns(self) -> i64 {
        if self.has(Self::MICROS) { 1_000 } else { 1 }
    }
}

/// The properties of a segment that differ from the prediction. Their values follow in the order of the bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differs(pub(crate) u8);

impl Differs {
    /// The arrival time: the time to the next segment. Predicted as 0.
    pub(crate) const TIME: Self = Self(1);
    /// The position: the number of records before the next segment. Predicted as 0.
    pub(crate) const PLACE: Self = Self(2);
    /// The link header, including a tunnel's headers: length and bytes.
    pub(crate) const LINK: Self = Self(4);
    /// The headers of IP and TCP, as a patch of the predicted headers.
    pub(crate) const HEADER: Self = Self(8);
    /// The IPv4 header checksum, as two bytes.
    pub(crate) const IP_CHECKSUM: Self = Self(16);
    /// The TCP checksum, as two bytes.
    pub(crate) const TCP_CHECKSUM: Self = Self(32);
    /// The padding: the bytes after the IP packet, as length and bytes.
    pub(crate) const PADDING: Self = Self(64);
    /// The difference between the length on the wire and the captured length.
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
