//! Region: a part of the front end's memory that both sides share.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Wrong;
use super::fields::Fields;

/// A memory region, with its addresses in the two address spaces that messages and descriptors use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The region's guest address, which descriptors of rings contain.
    pub guest_address: u64,
    /// The region's length in bytes, at least 1.
    pub bytes: u64,
    /// The region's address in the front end's process. Messages contain such addresses for rings.
    pub user_address: u64,
    /// The region's offset in its file, in bytes.
    pub file_offset: u64,
}

/// A memory region and the descriptor of its file.
#[derive(Clone, Debug)]
pub struct SharedRegion<F> {
    /// The memory region.
    pub region: Region,
    /// The descriptor of the file to map.
    pub file: F,
}

impl SharedRegion<OwnedFd> {
    /// Returns this region with a borrowed descriptor.
    pub(super) fn borrowed(&self) -> SharedRegion<BorrowedFd<'_>> {
        SharedRegion { region: self.region, file: self.file.as_fd() }
    }
}

impl Region {
    /// Parses a region, and checks that its ends do not overflow.
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Wrong> {
        let guest_address = fields.u64()?;
        let bytes = fields.u64()?;
        let region =
            Self { guest_address, bytes, user_address: fields.u64()?, file_offset: fields.u64()? };
        let starts = [region.guest_address, region.user_address, region.file_offset];
        let is_possible = starts.iter().all(|start| start.checked_add(bytes).is_some());
        if bytes == 0 || !is_possible {
            return Err(Wrong::Region(region));
        }
        Ok(region)
    }

    pub(super) fn write(&self, payload: &mut Vec<u8>) {
        for field in [self.guest_address, self.bytes, self.user_address, self.file_offset] {
            payload.extend_from_slice(&field.to_ne_bytes());
        }
    }

    /// Returns `true` if the regions overlap in guest addresses or in addresses of the front end.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        overlap(self.guest_address, self.bytes, other.guest_address, other.bytes)
            || overlap(self.user_address, self.bytes, other.user_address, other.bytes)
    }

    /// Returns `true` if both regions have the same addresses and the same length.
    pub(super) const fn is_at(&self, other: &Self) -> bool {
        self.guest_address == other.guest_address
            && self.user_address == other.user_address
            && self.bytes == other.bytes
    }
}

const fn overlap(a: u64, a_bytes: u64, b: u64, b_bytes: u64) -> bool {
    a < b.saturating_add(b_bytes) && b < a.saturating_add(a_bytes)
}
