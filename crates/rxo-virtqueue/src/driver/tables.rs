//! Writes descriptors, in the ring and in indirect tables.

use super::Segment;
use crate::config::{Area, ConfigError, DESCRIPTOR_BYTES, IndirectTables, QueueConfig};
use crate::memory::{Memory, Words};
use crate::ring::{Descriptor, INDIRECT, NEXT, WRITE, write_descriptor};

/// The indirect tables of a driver, one per id. The device only reads the tables; a device that also writes
/// them harms only itself.
#[derive(Debug)]
pub(super) struct Tables {
    words: Words,
    place: IndirectTables,
    most_segments: usize,
}

/// The last field of a descriptor, which depends on the layout of the ring.
pub(super) enum Link {
    /// In a split ring, the index of the next descriptor.
    Split(u16),
    /// In a packed ring, the id of the buffer.
    Packed(u16),
}

impl Segment {
    /// Returns the second half of this segment's descriptor: its length, `flags` and `link`.
    #[inline]
    pub(super) const fn rest(&self, flags: u16, link: Link) -> u64 {
        let (address, bytes) = (self.address, self.bytes);
        match link {
            Link::Split(link) => Descriptor { address, bytes, flags, link }.to_split(),
            Link::Packed(link) => Descriptor { address, bytes, flags, link }.to_packed(),
        }
    }
}

/// Returns each segment with the flags of its descriptor, and with `true` for the last one.
#[inline(always)]
pub(super) fn descriptors(segments: &[Segment]) -> impl Iterator<Item = (&Segment, u16, bool)> {
    segments.iter().enumerate().map(|(index, segment)| {
        let is_last = index + 1 == segments.len();
        let write = if segment.is_writable { WRITE } else { 0 };
        (segment, write | if is_last { 0 } else { NEXT }, is_last)
    })
}

impl Tables {
    pub(super) fn new(
        memory: &Memory,
        config: &QueueConfig,
        place: IndirectTables,
    ) -> Result<Self, ConfigError> {
        let (address, bytes) = (place.address, place.bytes(config.size));
        let words = memory.words(address, bytes, DESCRIPTOR_BYTES);
        let words = words.ok_or(ConfigError::Area { area: Area::Tables, address, bytes })?;
        // No chain may be longer than the queue (section 2.7.5.3.1), even if the tables are larger.
        let most_segments = usize::from(place.entries.min(config.size));
        Ok(Self { words, place, most_segments })
    }

    /// Returns `true` if one indirect table can hold this number of segments.
    #[inline]
    pub(super) fn hold(&self, segments: usize) -> bool {
        segments <= self.most_segments
    }

    /// Returns the guest address of the indirect table that belongs to the chain `id`.
    #[inline]
    pub(super) fn address(&self, id: u16) -> u64 {
        self.place.address + (self.first(id) * DESCRIPTOR_BYTES) as u64
    }

    #[inline]
    fn first(&self, id: u16) -> usize {
        usize::from(id) * usize::from(self.place.entries)
    }

    /// Writes `segments` into the indirect table of the chain `id`, for a split ring. Returns the second half
    /// of the ring's descriptor.
    #[inline]
    pub(super) fn fill_split(&self, id: u16, segments: &[Segment]) -> u64 {
        for (next, (segment, flags, is_last)) in (1..).zip(descriptors(segments)) {
            let at = self.first(id) + usize::from(next) - 1;
            let link = Link::Split(if is_last { 0 } else { next });
            write_descriptor(&self.words, at, segment.address, segment.rest(flags, link));
        }
        table(segments, INDIRECT, 0).to_split()
    }

    /// Writes `segments` into the indirect table of the chain `id`, for a packed ring. Returns the second
    /// half of the ring's descriptor, with the bits `available` among its flags.
    #[inline]
    pub(super) fn fill_packed(&self, id: u16, segments: &[Segment], available: u16) -> u64 {
        for (at, (segment, flags, _)) in (self.first(id)..).zip(descriptors(segments)) {
            let rest = segment.rest(flags & WRITE, Link::Packed(0));
            write_descriptor(&self.words, at, segment.address, rest);
        }
        table(segments, INDIRECT | available, id).to_packed()
    }
}

/// Returns the descriptor in the ring that refers to an indirect table with these `segments`.
#[inline]
fn table(segments: &[Segment], flags: u16, link: u16) -> Descriptor {
    let bytes = (segments.len() * DESCRIPTOR_BYTES) as u32;
    Descriptor { address: 0, bytes, flags, link }
}
