//! The driver side of a split ring (VIRTIO 1.2, section 2.7).

use std::sync::atomic::{Ordering, fence};

use super::slots::{Slot, Slots};
use super::tables::{Link, Tables, descriptors};
use super::{InvalidUsed, NoRoom, Segment, Used, written};
use crate::config::{Areas, QueueConfig};
use crate::notify::split_passes;
use crate::ring::{ENTRIES_AT, INDEX_AT, NO_NOTIFICATION, write_descriptor};

/// The state of a split ring on the driver side. Indices count modulo 2¹⁶, not modulo the ring size.
#[derive(Debug)]
pub(super) struct SplitDriver {
    areas: Areas,
    size: u16,
    event_index: bool,
    /// The chains in flight. The id of a chain is the index of its first descriptor.
    slots: Slots,
    /// For each descriptor of a chain, the index of the next descriptor.
    links: Vec<u16>,
    /// The number of chains that are in flight.
    in_flight: u16,
    /// The index of the next entry of the available ring that the driver writes.
    next_available: u16,
    /// The available index in memory, which the device can see.
    published: u16,
    /// The index of the next entry of the used ring that the driver consumes.
    next_used: u16,
    /// The used index as the driver last read it.
    known_used: u16,
    /// The number of entries published since the last call of `needs_notify`.
    unnotified: u32,
}

impl SplitDriver {
    pub(super) fn new(areas: Areas, config: &QueueConfig) -> Self {
        Self {
            areas,
            size: config.size,
            event_index: config.event_index,
            slots: Slots::new(config.size),
            links: vec![0; usize::from(config.size)],
            in_flight: 0,
            next_available: 0,
            published: 0,
            next_used: 0,
            known_used: 0,
            unnotified: 0,
        }
    }

    pub(super) fn free(&self) -> usize {
        self.slots.free()
    }

    #[inline]
    pub(super) fn post(
        &mut self,
        segments: &[Segment],
        tables: Option<&Tables>,
        slot: Slot,
    ) -> Result<(), NoRoom> {
        if usize::from(slot.descriptors) > self.slots.free() {
            return Err(NoRoom);
        }
        let head = self.slots.put(slot).ok_or(NoRoom)?;
        match tables {
            Some(tables) => {
                let rest = tables.fill_split(head, segments);
                write_descriptor(
                    &self.areas.descriptors,
                    usize::from(head),
                    tables.address(head),
                    rest,
                );
            }
            None => self.write_chain(head, segments),
        }
        self.make_available(head);
        self.in_flight += 1;
        Ok(())
    }

    /// Appends the chain `head` to the available ring. The device does not see it yet.
    #[inline]
    fn make_available(&mut self, head: u16) {
        let at = ENTRIES_AT + 2 * usize::from(self.next_available & (self.size - 1));
        self.areas.driver.half(at).store(head.to_le(), Ordering::Relaxed);
        self.next_available = self.next_available.wrapping_add(1);
    }

    #[inline]
    fn write_chain(&mut self, head: u16, segments: &[Segment]) {
        let mut index = head;
        for (segment, flags, is_last) in descriptors(segments) {
            // `post` has checked that there are enough free ids.
            let next = if is_last { 0 } else { self.slots.take_id().unwrap_or_default() };
            let rest = segment.rest(flags, Link::Split(next));
            write_descriptor(&self.areas.descriptors, usize::from(index), segment.address, rest);
            self.links[usize::from(index)] = next;
            index = next;
        }
    }

    #[inline]
    pub(super) fn publish(&mut self) {
        let more = self.next_available.wrapping_sub(self.published);
        if more > 0 {
            let available = self.next_available.to_le();
            self.areas.driver.half(INDEX_AT).store(available, Ordering::Release);
            self.published = self.next_available;
            self.unnotified = self.unnotified.saturating_add(u32::from(more));
        }
    }

    #[inline]
    pub(super) fn needs_notify(&mut self) -> bool {
        let passed = std::mem::take(&mut self.unnotified);
        if passed == 0 {
            return false;
        }
        // The index must be visible before the device's event index is read. The device writes and reads in
        // the opposite order, so at least one side sees the other's write.
        fence(Ordering::SeqCst);
        let used = &self.areas.device;
        if self.event_index {
            let at = ENTRIES_AT + 8 * usize::from(self.size);
            let event = u16::from_le(used.half(at).load(Ordering::Relaxed));
            split_passes(event, self.published, passed)
        } else {
            u16::from_le(used.half(0).load(Ordering::Relaxed)) & NO_NOTIFICATION == 0
        }
    }

    #[inline]
    pub(super) fn take_used(&mut self) -> Result<Option<Used>, InvalidUsed> {
        let Some((id, bytes)) = self.next_used()? else { return Ok(None) };
        let slot = self.slots.remove(id).ok_or(InvalidUsed::UnknownId { id })?;
        self.free_links(id, slot.descriptors);
        self.next_used = self.next_used.wrapping_add(1);
        self.in_flight -= 1;
        written(slot, bytes).map(Some)
    }

    #[inline]
    pub(super) fn recycle(&mut self) -> Result<Option<Used>, InvalidUsed> {
        let Some((id, bytes)) = self.next_used()? else { return Ok(None) };
        let slot = self.slots.get(id).ok_or(InvalidUsed::UnknownId { id })?;
        if !slot.is_single {
            return self.take_used();
        }
        self.next_used = self.next_used.wrapping_add(1);
        // `id` is less than the number of slots, which fits into 16 bits.
        let head = id as u16;
        let segment =
            Segment { address: slot.address, bytes: slot.writable_bytes, is_writable: true };
        self.write_chain(head, &[segment]);
        self.make_available(head);
        written(slot, bytes).map(Some)
    }

    /// Returns the id of the next chain that the device has used, and the number of written bytes; `None` if there is
    /// none.
    #[inline]
    fn next_used(&mut self) -> Result<Option<(u32, u32)>, InvalidUsed> {
        if self.next_used == self.known_used {
            let used = self.used_index();
            if used.wrapping_sub(self.next_used) > self.in_flight {
                return Err(InvalidUsed::UsedIndex);
            }
            self.known_used = used;
            if self.next_used == used {
                return Ok(None);
            }
        }
        let at = ENTRIES_AT + 8 * usize::from(self.next_used & (self.size - 1));
        let id = u32::from_le(self.areas.device.word32(at).load(Ordering::Relaxed));
        let bytes = u32::from_le(self.areas.device.word32(at + 4).load(Ordering::Relaxed));
        Ok(Some((id, bytes)))
    }

    /// Frees the descriptors of the chain `id` except its first one. The chain must have been in flight.
    #[inline]
    fn free_links(&mut self, id: u32, descriptors: u16) {
        let mut index = id as usize;
        for _ in 1..descriptors {
            let next = self.links[index];
            self.slots.free_id(next);
            index = usize::from(next);
        }
    }

    #[inline]
    fn used_index(&self) -> u16 {
        u16::from_le(self.areas.device.half(INDEX_AT).load(Ordering::Acquire))
    }

    pub(super) fn disable_notifications(&mut self) {
        // With the event index this flag is not used.
        if !self.event_index {
            self.areas.driver.half(0).store(NO_NOTIFICATION.to_le(), Ordering::Relaxed);
        }
    }

    pub(super) fn enable_notifications(&mut self) -> bool {
        let available = &self.areas.driver;
        if self.event_index {
            let at = ENTRIES_AT + 2 * usize::from(self.size);
            available.half(at).store(self.next_used.to_le(), Ordering::Relaxed);
        } else {
            available.half(0).store(0, Ordering::Relaxed);
        }
        // The same ordering as in `needs_notify`, with the two sides exchanged.
        fence(Ordering::SeqCst);
        self.used_index() != self.next_used
    }
}
