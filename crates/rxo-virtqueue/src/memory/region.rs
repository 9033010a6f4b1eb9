//! A memory region: a range of guest addresses and the part of a mapping that backs it.

use std::fmt;
use std::sync::Arc;

use super::Mapping;

/// A range of guest addresses that is backed by a part of a mapping.
#[derive(Clone, Debug)]
pub struct Region {
    guest_start: u64,
    user_start: u64,
    bytes: u64,
    mapping: Arc<Mapping>,
    offset: usize,
}

impl Region {
    /// Creates the region of `bytes` bytes at guest address `guest_start`. The region is at address
    /// `user_start` in the front end, and at `offset` in `mapping` in this process.
    ///
    /// # Errors
    /// [`RegionError`] if `bytes` is 0, if an end would wrap around, or if the region exceeds the mapping.
    pub fn new(
        guest_start: u64,
        user_start: u64,
        mapping: Arc<Mapping>,
        offset: u64,
        bytes: u64,
    ) -> Result<Self, RegionError> {
        let ends = guest_start.checked_add(bytes).and(user_start.checked_add(bytes));
        if bytes == 0 || ends.is_none() {
            return Err(RegionError::Range { guest_start, bytes });
        }
        let mapped = mapping.len() as u64;
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= mapped);
        let offset = usize::try_from(offset).ok().filter(|_| is_inside);
        let Some(offset) = offset else { return Err(RegionError::Beyond { guest_start, mapped }) };
        Ok(Self { guest_start, user_start, bytes, mapping, offset })
    }

    /// Returns the first guest address of the region.
    #[inline]
    #[must_use]
    pub const fn guest_start(&self) -> u64 {
        self.guest_start
    }

    /// Returns the first address of the region in the front end's own virtual memory.
    #[must_use]
    pub const fn user_start(&self) -> u64 {
        self.user_start
    }

    /// Returns the length of the region, in bytes.
    #[inline]
    #[must_use]
    pub const fn byte_len(&self) -> u64 {
        self.bytes
    }

    /// Returns the mapping that backs the region.
    #[inline]
    #[must_use]
    pub const fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Returns the offset of the region in the mapping, in bytes.
    #[inline]
    pub(super) const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the mapping and the offset in it of the `bytes` bytes at guest address `address`; `None` if the region
    /// does not contain them all.
    #[inline]
    pub(super) fn mapped(&self, address: u64, bytes: usize) -> Option<(&Mapping, usize)> {
        let inside = address.wrapping_sub(self.guest_start);
        let is_inside = inside < self.bytes && bytes as u64 <= self.bytes - inside;
        is_inside.then(|| (&*self.mapping, self.offset + inside as usize))
    }

    pub(super) fn guest_address(&self, user: u64) -> Option<u64> {
        let inside = user.wrapping_sub(self.user_start);
        (inside < self.bytes).then(|| self.guest_start + inside)
    }

    pub(super) const fn overlaps(&self, other: &Self) -> bool {
        ranges_overlap(self.guest_start, self.bytes, other.guest_start, other.bytes)
            || ranges_overlap(self.user_start, self.bytes, other.user_start, other.bytes)
    }
}

/// Returns `true` if two ranges have an address in common. Neither range may wrap around.
const fn ranges_overlap(a: u64, a_bytes: u64, b: u64, b_bytes: u64) -> bool {
    a < b + b_bytes && b < a + a_bytes
}

/// The reason for which a memory region is refused: a fault of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionError {
    /// The region has length 0, or its end wraps around.
    Range {
        /// The first guest address of the region.
        guest_start: u64,
        /// The length of the region, in bytes.
        bytes: u64,
    },
    /// The region ends beyond its mapping.
    Beyond {
        /// The first guest address of the region.
        guest_start: u64,
        /// The length of the mapping, in bytes.
        mapped: u64,
    },
    /// The region overlaps another one in guest addresses or front-end addresses.
    Overlaps {
        /// The first guest address of the region.
        guest_start: u64,
    },
    /// There are [`super::MOST_REGIONS`] regions already.
    TooMany,
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { guest_start, bytes } => {
                write!(f, "the memory region at {guest_start:#x} of {bytes} bytes is no range")
            }
            Self::Beyond { guest_start, mapped } => write!(
                f,
                "the memory region at {guest_start:#x} ends beyond the {mapped} bytes that are mapped"
            ),
            Self::Overlaps { guest_start } => {
                write!(f, "the memory region at {guest_start:#x} overlaps another")
            }
            Self::TooMany => write!(f, "there are {} memory regions already", super::MOST_REGIONS),
        }
    }
}

impl std::error::Error for RegionError {}
