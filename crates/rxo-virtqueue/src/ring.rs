//! Definitions that both sides of a ring share: descriptors, positions in a packed ring, offsets of fields.

use std::sync::atomic::Ordering;

use crate::config::DESCRIPTOR_BYTES;
use crate::memory::Words;

/// Descriptor flag: the chain continues with another descriptor.
pub(crate) const NEXT: u16 = 1;
/// Descriptor flag: the device writes the buffer; without the flag it reads the buffer.
pub(crate) const WRITE: u16 = 2;
/// Descriptor flag: the buffer is a table of descriptors.
pub(crate) const INDIRECT: u16 = 4;
/// Descriptor flag in a packed ring: equals the driver's wrap counter if the descriptor is available.
pub(crate) const AVAILABLE: u16 = 1 << 7;
/// Descriptor flag in a packed ring: equals the device's wrap counter if the descriptor is used.
pub(crate) const USED: u16 = 1 << 15;

/// Flag in the field `flags` of a split ring's available or used ring: do not notify.
pub(crate) const NO_NOTIFICATION: u16 = 1;
/// The offset of the field `idx` in the available and the used ring of a split ring, in bytes.
pub(crate) const INDEX_AT: usize = 2;
/// The offset of the entries in the available and the used ring of a split ring, in bytes.
pub(crate) const ENTRIES_AT: usize = 4;

/// A copy of one descriptor, from a split or a packed ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) flags: u16,
    /// In a split ring, the index of the next descriptor; in a packed ring, the buffer id.
    pub(crate) link: u16,
}

impl Descriptor {
    /// Returns the descriptor at `index` of a split ring's table. Each half is read once.
    #[inline]
    pub(crate) fn of_split(table: &Words, index: u16) -> Self {
        let at = usize::from(index) * DESCRIPTOR_BYTES;
        let address = u64::from_le(table.word64(at).load(Ordering::Relaxed));
        Self::split(address, u64::from_le(table.word64(at + 8).load(Ordering::Relaxed)))
    }

    #[inline]
    const fn split(address: u64, rest: u64) -> Self {
        let (flags, link) = ((rest >> 32) as u16, (rest >> 48) as u16);
        Self { address, bytes: rest as u32, flags, link }
    }

    /// Returns the second half of this descriptor as a 64-bit word of a split ring.
    #[inline]
    pub(crate) const fn to_split(self) -> u64 {
        self.bytes as u64 | (self.flags as u64) << 32 | (self.link as u64) << 48
    }

    /// Returns the descriptor of a packed ring that has the halves `address` and `rest`.
    #[inline]
    pub(crate) const fn packed(address: u64, rest: u64) -> Self {
        let (link, flags) = ((rest >> 32) as u16, (rest >> 48) as u16);
        Self { address, bytes: rest as u32, flags, link }
    }

    /// Returns the second half of this descriptor as a 64-bit word of a packed ring.
    #[inline]
    pub(crate) const fn to_packed(self) -> u64 {
        self.bytes as u64 | (self.link as u64) << 32 | (self.flags as u64) << 48
    }

    /// Returns the descriptor in the bytes of an indirect table's entry.
    #[inline]
    pub(crate) fn from_bytes(bytes: [u8; DESCRIPTOR_BYTES], is_packed: bool) -> Self {
        let both = u128::from_le_bytes(bytes);
        let (address, rest) = (both as u64, (both >> 64) as u64);
        if is_packed { Self::packed(address, rest) } else { Self::split(address, rest) }
    }
}

/// Writes the two halves of a descriptor. The other side must not see it before a later release store, which makes it
/// available.
#[inline]
pub(crate) fn write_descriptor(table: &Words, index: usize, address: u64, rest: u64) {
    let at = index * DESCRIPTOR_BYTES;
    table.word64(at).store(address.to_le(), Ordering::Relaxed);
    table.word64(at + 8).store(rest.to_le(), Ordering::Relaxed);
}

/// A position in a packed ring: the index of a descriptor, and the wrap counter, which distinguishes odd from even laps
/// (section 2.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) index: u16,
    pub(crate) wrap: bool,
}

impl Position {
    /// The position in a packed ring at which both sides start.
    pub(crate) const START: Self = Self { index: 0, wrap: true };

    /// Decodes a position from a field with the index in the low 15 bits and the wrap counter above; `None`
    /// if the index is outside the ring.
    #[inline]
    pub(crate) const fn from_off_wrap(field: u32, size: u16) -> Option<Self> {
        let (index, wrap) = (field & 0x7fff, field & 0x8000 != 0);
        if index >= size as u32 {
            return None;
        }
        Some(Self { index: index as u16, wrap })
    }

    /// Encodes the position in a field with the index in the low 15 bits and the wrap counter above.
    #[inline]
    pub(crate) const fn off_wrap(self) -> u32 {
        self.index as u32 | (self.wrap as u32) << 15
    }

    /// Returns the position that is `by` descriptors ahead of this one; `by` is at most the size of the ring.
    #[inline]
    pub(crate) const fn ahead(self, by: u16, size: u16) -> Self {
        let index = self.index as u32 + by as u32;
        if index < size as u32 {
            return Self { index: index as u16, wrap: self.wrap };
        }
        Self { index: (index - size as u32) as u16, wrap: !self.wrap }
    }

    /// Returns the position as a number below twice the ring's size, which increases by one per descriptor over two
    /// laps.
    #[inline]
    pub(crate) const fn linear(self, size: u16) -> u32 {
        self.index as u32 + if self.wrap { 0 } else { size as u32 }
    }

    /// Returns the flags of a descriptor that is used in this lap of the ring: `AVAILABLE` and `USED` both set or both
    /// clear.
    #[inline]
    pub(crate) const fn both_bits(self) -> u16 {
        if self.wrap { AVAILABLE | USED } else { 0 }
    }

    /// Returns the flags of a descriptor that is available in this lap of the ring.
    #[inline]
    pub(crate) const fn available_bits(self) -> u16 {
        if self.wrap { AVAILABLE } else { USED }
    }
}
