//! The driver's own record of the chains in flight, which the device cannot change.

/// The driver's chains in flight, indexed by their id.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// The free ids of chains. The last id in this list is used next.
    free: Vec<u16>,
}

/// A chain that is in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// The guest address of the chain's segment, if `is_single`.
    pub(super) address: u64,
    pub(super) token: u32,
    /// The number of bytes of the chain that the device may write.
    pub(super) writable_bytes: u32,
    /// The number of descriptors that the chain occupies in the ring; 0 if the id is free.
    pub(super) descriptors: u16,
    /// `true` if the chain is one segment that the device writes.
    pub(super) is_single: bool,
}

impl Slots {
    pub(super) fn new(size: u16) -> Self {
        let slots = vec![Slot::default(); usize::from(size)];
        Self { slots, free: (0..size).rev().collect() }
    }

    /// Returns the number of free ids for chains.
    #[inline]
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Stores the chain `slot` under a free id and returns the id; `None` if no id is free.
    #[inline]
    pub(super) fn put(&mut self, slot: Slot) -> Option<u16> {
        let id = self.free.pop()?;
        self.slots[usize::from(id)] = slot;
        Some(id)
    }

    /// Takes a free id, for a descriptor that is not the first of its chain; `None` if no id is free.
    #[inline]
    pub(super) fn take_id(&mut self) -> Option<u16> {
        self.free.pop()
    }

    /// Frees an id that [`Slots::take_id`] has returned.
    #[inline]
    pub(super) fn free_id(&mut self, id: u16) {
        self.free.push(id);
    }

    /// Returns the chain with this id, which stays in flight; `None` if no chain with this id is in flight.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<Slot> {
        self.slots.get(id as usize).copied().filter(|slot| slot.descriptors > 0)
    }

    /// Removes the chain with this id and returns it; `None` if no chain with this id is in flight.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> Option<Slot> {
        let slot = self.slots.get_mut(id as usize)?;
        let taken = std::mem::take(slot);
        if taken.descriptors == 0 {
            return None;
        }
        // `id` is less than the number of slots, which fits into 16 bits.
        self.free.push(u16::try_from(id).ok()?);
        Some(taken)
    }
}
