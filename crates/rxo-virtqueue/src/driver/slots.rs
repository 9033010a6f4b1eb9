//! What a driver keeps to itself of the chains that a device has: a device cannot change it.

/// The chains in flight, by their id.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Ids that are free, the next one last.
    free: Vec<u16>,
}

/// One chain in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub(super) token: u32,
    /// Bytes that the device may write.
    pub(super) writable_bytes: u32,
    /// Descriptors of the ring that it takes; 0 if the id is free.
    pub(super) descriptors: u16,
}

impl Slots {
    pub(super) fn new(size: u16) -> Self {
        let slots = vec![Slot::default(); usize::from(size)];
        Self { slots, free: (0..size).rev().collect() }
    }

    /// How many ids are free.
    #[inline]
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    /// Gives `slot` a free id.
    #[inline]
    pub(super) fn put(&mut self, slot: Slot) -> Option<u16> {
        let id = self.free.pop()?;
        self.slots[usize::from(id)] = slot;
        Some(id)
    }

    /// An id for a descriptor that is not the first of its chain.
    #[inline]
    pub(super) fn take_id(&mut self) -> Option<u16> {
        self.free.pop()
    }

    /// Gives back such an id.
    #[inline]
    pub(super) fn free_id(&mut self, id: u16) {
        self.free.push(id);
    }

    /// Takes the chain `id` out; `None` if none is in flight under this id.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> Option<Slot> {
        let slot = self.slots.get_mut(id as usize)?;
        let taken = std::mem::take(slot);
        if taken.descriptors == 0 {
            return None;
        }
        // Below the number of slots, which 16 bits hold.
        self.free.push(u16::try_from(id).ok()?);
        Some(taken)
    }
}
