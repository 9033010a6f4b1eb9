//! Shared memory: regions of guest addresses, each backed by a mapping of this process.
//!
//! [`Memory`] translates guest addresses and checks every access. All queues of a device share one memory.
//! Regions are added and removed while the queues run (`VHOST_USER_ADD_MEM_REG`, `VHOST_USER_REM_MEM_REG`).
//!
//! # Contract
//! Regions never overlap. An access outside all regions is refused. Queues receive `&Memory` in each call, so a
//! removed region is unreachable in all later calls. The mappings of a queue's own rings exist until the queue
//! is dropped.

mod dirty;
mod mapping;
mod region;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use dirty::{DirtyLog, DirtyLogError};
pub use mapping::Mapping;
pub(crate) use mapping::{Room, Words};
pub use region::{Region, RegionError};

/// The maximum number of regions: more than any kernel or QEMU uses.
pub const MOST_REGIONS: usize = 512;

/// The number of regions up to which a linear search takes fewer instructions than a binary search.
const FEW_REGIONS: usize = 4;

/// The regions of a guest's memory, ordered by guest address.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    regions: Vec<Region>,
}

/// A range inside one region, as offsets only: [`Memory`] checks them again at each access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    region: u32,
    pub(crate) offset: usize,
    pub(crate) bytes: u32,
}

impl Memory {
    /// Creates a memory without regions, so that no address is valid.
    #[must_use]
    pub const fn new() -> Self {
        Self { regions: Vec::new() }
    }

    /// Adds a region to the memory.
    ///
    /// # Errors
    /// [`RegionError`] if it overlaps another region, in guest addresses or in front-end addresses, or if
    /// there are [`MOST_REGIONS`] already.
    pub fn add(&mut self, region: Region) -> Result<(), RegionError> {
        if self.regions.len() == MOST_REGIONS {
            return Err(RegionError::TooMany);
        }
        if self.regions.iter().any(|other| other.overlaps(&region)) {
            return Err(RegionError::Overlaps { guest_start: region.guest_start() });
        }
        let at = self.regions.partition_point(|r| r.guest_start() < region.guest_start());
        self.regions.insert(at, region);
        Ok(())
    }

    /// Removes and returns the region with exactly this guest address and length; `None` if there is no such
    /// region.
    pub fn remove(&mut self, guest_start: u64, bytes: u64) -> Option<Region> {
        let at = self
            .regions
            .iter()
            .position(|r| r.guest_start() == guest_start && r.byte_len() == bytes)?;
        Some(self.regions.remove(at))
    }

    /// Returns all regions, ordered by guest address.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Translates `user`, an address in the front end's virtual memory, to a guest address. vhost-user messages
    /// contain the addresses of rings as addresses of the front end. `None` if no region contains the address.
    #[must_use]
    pub fn guest_address(&self, user: u64) -> Option<u64> {
        self.regions.iter().find_map(|region| region.guest_address(user))
    }

    /// Copies the bytes at guest address `address` to `to`. The range may span several regions.
    ///
    /// Returns `false` if the range is not inside regions; `to` is then partly written.
    #[inline(always)]
    #[must_use]
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        // Nearly always one region contains the whole range.
        let region = self.region_of(address).and_then(|index| self.regions.get(index));
        match region.and_then(|region| region.mapped(address, to.len())) {
            Some((mapping, offset)) => mapping.read(offset, to),
            None => self.read_across(address, to),
        }
    }

    #[cold]
    fn read_across(&self, address: u64, to: &mut [u8]) -> bool {
        let mut done = 0;
        self.for_each_place(address, to.len(), |memory, place| {
            let end = done + place.bytes as usize;
            let is_read = memory.read_place(place, &mut to[done..end]);
            done = end;
            is_read
        })
    }

    /// Copies `from` to guest address `address`. The range may span several regions.
    ///
    /// Returns `false` if the range is not inside regions; the range is then partly written.
    #[must_use]
    pub fn write(&self, address: u64, from: &[u8]) -> bool {
        let mut done = 0;
        self.for_each_place(address, from.len(), |memory, place| {
            let end = done + place.bytes as usize;
            let is_written = memory.write_place(place, 0, &from[done..end]);
            done = end;
            is_written
        })
    }

    fn for_each_place(
        &self,
        mut address: u64,
        bytes: usize,
        mut access: impl FnMut(&Self, Place) -> bool,
    ) -> bool {
        let mut left = bytes;
        while left > 0 {
            let most = u32::try_from(left).unwrap_or(u32::MAX);
            let Some(place) = self.locate(address, most) else { return false };
            if !access(self, place) {
                return false;
            }
            left -= place.bytes as usize;
            address = address.wrapping_add(u64::from(place.bytes));
        }
        true
    }

    /// Returns the location of the `bytes` bytes at `address`, cut at the end of the region that contains
    /// `address`. `None` if `address` is outside all regions, or if `bytes` is zero.
    #[inline]
    pub(crate) fn locate(&self, address: u64, bytes: u32) -> Option<Place> {
        let index = self.region_of(address)?;
        let region = &self.regions[index];
        let inside = address - region.guest_start();
        let left = region.byte_len() - inside;
        let bytes = if u64::from(bytes) <= left { bytes } else { low_half(left) };
        // Both casts fit: there are at most `MOST_REGIONS` regions, and the length of a mapping is a `usize`.
        (bytes > 0).then(|| Place {
            region: low_half(index as u64),
            offset: region.offset() + usize_of(inside),
            bytes,
        })
    }

    #[inline]
    fn region_of(&self, address: u64) -> Option<usize> {
        let holds = |r: &Region| address.wrapping_sub(r.guest_start()) < r.byte_len();
        if self.regions.len() <= FEW_REGIONS {
            return self.regions.iter().position(holds);
        }
        let after = self.regions.partition_point(|r| r.guest_start() <= address);
        let index = after.checked_sub(1)?;
        holds(&self.regions[index]).then_some(index)
    }

    /// Copies bytes from the start of `place` to all of `to`. Returns `false` if `to` is longer than `place`, or if the
    /// region was removed.
    #[inline]
    #[must_use]
    pub(crate) fn read_place(&self, place: Place, to: &mut [u8]) -> bool {
        let Some(region) = self.regions.get(place.region as usize) else { return false };
        to.len() <= place.bytes as usize && region.mapping().read(place.offset, to)
    }

    /// Copies `from` to `place`, `skip` bytes after its start. Returns `false` if `from` does not fit, or if
    /// the region was removed.
    #[inline]
    #[must_use]
    pub(crate) fn write_place(&self, place: Place, skip: u32, from: &[u8]) -> bool {
        let Some(region) = self.regions.get(place.region as usize) else { return false };
        let fits = skip <= place.bytes && from.len() <= (place.bytes - skip) as usize;
        fits && region.mapping().write(place.offset + skip as usize, from)
    }

    /// Returns the guest address of the start of `place`. `None` if the region was removed.
    pub(crate) fn guest_start(&self, place: Place) -> Option<u64> {
        let region = self.regions.get(place.region as usize)?;
        let inside = place.offset.checked_sub(region.offset())?;
        region.guest_start().checked_add(inside as u64)
    }

    /// Returns the range `place` as memory to be written. `None` if the region was removed.
    #[inline(always)]
    pub(crate) fn room(&self, place: Place) -> Option<Room<'_>> {
        let region = self.regions.get(place.region as usize)?;
        region.mapping().room(place.offset, place.bytes as usize)
    }

    /// Returns the `bytes` bytes at `address` as atomic words; `None` unless one region contains all bytes and
    /// `address` is aligned.
    pub(crate) fn words(&self, address: u64, bytes: usize, alignment: usize) -> Option<Words> {
        let region = &self.regions[self.region_of(address)?];
        let inside = address - region.guest_start();
        if u64::try_from(bytes).ok()? > region.byte_len() - inside {
            return None;
        }
        let offset = region.offset() + usize_of(inside);
        Words::new(region.mapping(), offset, bytes, alignment)
    }

    /// Creates a memory with one region of `bytes` zeros in this process, at guest and front-end address
    /// `start`. Allocates.
    ///
    /// # Errors
    /// [`RegionError`] if the region is empty or its end would wrap around.
    pub fn zeroed(start: u64, bytes: usize) -> Result<Self, RegionError> {
        let mapping = Arc::new(Mapping::zeroed(bytes));
        let mut memory = Self::new();
        memory.add(Region::new(start, start, mapping, 0, bytes as u64)?)?;
        Ok(memory)
    }
}

#[inline]
const fn low_half(value: u64) -> u32 {
    value as u32
}

#[inline]
const fn usize_of(inside: u64) -> usize {
    inside as usize
}
