//! The control bits of a TCP header.

use core::fmt;
use core::ops::BitOr;

/// The twelve bits between data offset and window of a TCP header: control bits and reserved bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(u16);

impl TcpFlags {
    /// FIN: the sender has no more data.
    pub const FIN: Self = Self(0x001);
    /// SYN: synchronises sequence numbers, to open a connection.
    pub const SYN: Self = Self(0x002);
    /// RST: resets the connection.
    pub const RST: Self = Self(0x004);
    /// PSH (push): the receiver should deliver the data to the application.
    pub const PSH: Self = Self(0x008);
    /// ACK: the acknowledgement number is valid.
    pub const ACK: Self = Self(0x010);
    /// URG: the urgent pointer is valid.
    pub const URG: Self = Self(0x020);
    /// ECE (ECN echo): the receiver received packets with congestion marks (RFC 3168).
    pub const ECE: Self = Self(0x040);
    /// CWR (congestion window reduced): the sender has reduced its congestion window after an ECN echo (RFC
    /// 3168).
    pub const CWR: Self = Self(0x080);
    /// AE (accurate ECN), formerly the nonce sum (RFC 9768).
    pub const AE: Self = Self(0x100);
    /// The three control bits that are still reserved.
    pub const RESERVED: Self = Self(0xe00);

    /// Extracts the flags from the two bytes that contain data offset and flags.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0x0fff)
    }

    /// Returns the flags as a number of twelve bits.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns `true` if all flags of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns `true` if any flag of `other` is set.
    #[inline]
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the flags without those of `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the flags of both, like the operator `|`, but usable in constants.
    #[inline]
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for TcpFlags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
        let mut separator = "";
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 >> bit & 1 != 0 {
                write!(f, "{separator}{name}")?;
                separator = "|";
            }
        }
        if self.0 >> 9 != 0 { write!(f, "{separator}reserved") } else { Ok(()) }
    }
}
