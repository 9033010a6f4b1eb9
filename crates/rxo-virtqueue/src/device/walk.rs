//! Follows one chain of descriptors: validates them and collects the locations of their buffers.
//!
//! The descriptors come from either ring or from an indirect table; the same rules apply to all.

use super::InvalidChain;
use crate::config::DESCRIPTOR_BYTES;
use crate::memory::{MOST_REGIONS, Memory, Place};
use crate::ring::{Descriptor, INDIRECT, NEXT, WRITE};

/// The kind of access for which the device needs the buffers of a chain: it reads or writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The locations of the buffers that were collected for one packet. They are offsets, valid only for the
/// memory in which they were located.
#[derive(Debug)]
pub(super) struct Walk {
    /// The locations of the buffers for the requested access, of one or several chains.
    pub(super) places: Vec<Place>,
    access: Access,
    /// The maximum number of locations of one chain. It exceeds the maximum number of buffers: a buffer that spans two
    /// regions has two locations.
    most_places: usize,
    first_place: usize,
    /// The number of buffers that the chains of the current packet may still have.
    left: u32,
    /// The number of bytes in the current chain that the device may read.
    pub(super) readable_bytes: u32,
    /// The number of bytes in the current chain that the device may write.
    pub(super) writable_bytes: u32,
}

/// The maximum number of buffers in the chains of one packet. Without this limit, a driver could make the
/// device read 2³⁰ descriptors for one packet: 32,768 chains, each with an indirect table of 32,768
/// descriptors. The largest packet needs 1,025 buffers of 64 bytes.
pub(super) const MOST_BUFFERS: u32 = 4_096;

/// The parameters of a queue that limit its chains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) size: u16,
    pub(super) indirect: bool,
    pub(super) is_packed: bool,
}

impl Walk {
    pub(super) fn new(size: u16) -> Self {
        Self {
            places: Vec::with_capacity(usize::from(size)),
            access: Access::Read,
            most_places: usize::from(size) + MOST_REGIONS,
            first_place: 0,
            left: MOST_BUFFERS,
            readable_bytes: 0,
            writable_bytes: 0,
        }
    }

    /// Removes all locations, for a new packet. The next chains are collected for `access`.
    #[inline]
    pub(super) fn start(&mut self, access: Access) {
        self.places.clear();
        self.left = MOST_BUFFERS;
        self.access = access;
    }

    /// Returns `true` if the buffers that are collected are to be written by the device.
    #[inline]
    pub(super) fn is_writing(&self) -> bool {
        self.access == Access::Write
    }

    /// Begins a chain. Keeps the locations of the packet's earlier chains.
    #[inline]
    pub(super) fn begin_chain(&mut self) {
        self.first_place = self.places.len();
        (self.readable_bytes, self.writable_bytes) = (0, 0);
    }

    /// Adds one buffer of a chain, after checking that it breaks no rule. The error is the rule that it breaks.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        memory: &Memory,
        descriptor: Descriptor,
    ) -> Result<(), InvalidChain> {
        let Descriptor { address, bytes, flags, .. } = descriptor;
        self.left = self.left.checked_sub(1).ok_or(InvalidChain::TooLong)?;
        if bytes == 0 {
            return Err(InvalidChain::ZeroLength);
        }
        let access = if flags & WRITE != 0 { Access::Write } else { Access::Read };
        if access == Access::Read && self.writable_bytes > 0 {
            return Err(InvalidChain::ReadableAfterWritable);
        }
        let all = self.readable_bytes + self.writable_bytes;
        if all.checked_add(bytes).is_none() {
            return Err(InvalidChain::TooManyBytes);
        }
        match access {
            Access::Read => self.readable_bytes += bytes,
            Access::Write => self.writable_bytes += bytes,
        }
        if access == self.access { self.locate(memory, address, bytes) } else { Ok(()) }
    }

    /// Adds the only buffer of a chain, for writing, and returns its length in bytes. Returns `None` and adds
    /// nothing if the buffer breaks a rule or spans two regions. In that case the caller must call
    /// [`Walk::add`].
    #[inline(always)]
    pub(super) fn add_single(&mut self, memory: &Memory, descriptor: Descriptor) -> Option<u32> {
        let Descriptor { address, bytes, flags, .. } = descriptor;
        if flags & (NEXT | INDIRECT | WRITE) != WRITE || self.left == 0 {
            return None;
        }
        let place = memory.locate(address, bytes).filter(|place| place.bytes == bytes)?;
        self.left -= 1;
        self.places.push(place);
        Some(bytes)
    }

    #[inline(always)]
    fn locate(
        &mut self,
        memory: &Memory,
        mut address: u64,
        mut bytes: u32,
    ) -> Result<(), InvalidChain> {
        loop {
            let place = memory.locate(address, bytes).ok_or(InvalidChain::OutsideMemory)?;
            if self.places.len() - self.first_place == self.most_places {
                return Err(InvalidChain::TooLong);
            }
            self.places.push(place);
            bytes -= place.bytes;
            if bytes == 0 {
                return Ok(());
            }
            address = address.wrapping_add(u64::from(place.bytes));
        }
    }

    /// Adds the buffers of an indirect table, which may have at most `left` descriptors.
    pub(super) fn add_table(
        &mut self,
        memory: &Memory,
        table: Descriptor,
        left: u16,
        rules: Rules,
    ) -> Result<(), InvalidChain> {
        if !rules.indirect {
            return Err(InvalidChain::IndirectNotNegotiated);
        }
        let whole = table.bytes.is_multiple_of(DESCRIPTOR_BYTES as u32);
        if table.bytes == 0 || !whole {
            return Err(InvalidChain::IndirectLength);
        }
        let entries = table.bytes / DESCRIPTOR_BYTES as u32;
        if rules.is_packed && entries > u32::from(left) {
            return Err(InvalidChain::TooLong);
        }
        let mut index = 0;
        for _ in 0..left {
            let descriptor = entry(memory, table.address, index, rules.is_packed)?;
            if descriptor.flags & INDIRECT != 0 {
                return Err(InvalidChain::IndirectNested);
            }
            self.add(memory, descriptor)?;
            // In an indirect table of a packed ring, the entries follow one another (section 2.8.7).
            let (ends, next) = if rules.is_packed {
                (index + 1 == entries, index + 1)
            } else {
                (descriptor.flags & NEXT == 0, u32::from(descriptor.link))
            };
            if ends {
                return Ok(());
            }
            if next >= entries {
                return Err(InvalidChain::DescriptorIndex);
            }
            index = next;
        }
        Err(InvalidChain::TooLong)
    }
}

/// Returns a copy of one entry of an indirect table.
fn entry(
    memory: &Memory,
    table: u64,
    index: u32,
    is_packed: bool,
) -> Result<Descriptor, InvalidChain> {
    let at = u64::from(index) * DESCRIPTOR_BYTES as u64;
    let address = table.checked_add(at).ok_or(InvalidChain::IndirectOutside)?;
    let mut bytes = [0; DESCRIPTOR_BYTES];
    if !memory.read(address, &mut bytes) {
        return Err(InvalidChain::IndirectOutside);
    }
    Ok(Descriptor::from_bytes(bytes, is_packed))
}
