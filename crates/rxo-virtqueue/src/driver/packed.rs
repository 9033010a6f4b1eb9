//! The driver side of a packed ring (VIRTIO 1.2, section 2.8).

use std::sync::atomic::{Ordering, fence};

use super::slots::{Slot, Slots};
use super::tables::{Link, Tables, descriptors};
use super::{InvalidUsed, NoRoom, Segment, Used, written};
use crate::config::{Areas, DESCRIPTOR_BYTES, QueueConfig};
use crate::notify::{FLAG_DESCRIPTOR, FLAG_DISABLE, FLAG_ENABLE, packed_passes};
use crate::ring::{AVAILABLE, Descriptor, Position, USED, WRITE};

/// The state of a packed ring on the driver side.
#[derive(Debug)]
pub(super) struct PackedDriver {
    areas: Areas,
    size: u16,
    event_index: bool,
    slots: Slots,
    /// The number of free descriptors in the ring.
    free: u16,
    /// The position in the ring of the next descriptor to make available.
    available: Position,
    /// The position in the ring at which the device will write the next used descriptor.
    used: Position,
    /// The second half of the first available descriptor that was not published, with its index in the ring;
    /// `None` if all available descriptors were published. Later descriptors are already in the ring, but the
    /// device reads the ring in order, so it does not see them yet.
    first: Option<(u16, u64)>,
    /// The position after the last descriptor that the device can see.
    published: Position,
    /// The number of descriptors that were made available but not published.
    unpublished: u32,
    /// The number of descriptors published since the last call of `needs_notify`.
    unnotified: u32,
}

impl PackedDriver {
    pub(super) fn new(areas: Areas, config: &QueueConfig) -> Self {
        Self {
            areas,
            size: config.size,
            event_index: config.event_index,
            slots: Slots::new(config.size),
            free: config.size,
            available: Position::START,
            used: Position::START,
            first: None,
            published: Position::START,
            unpublished: 0,
            unnotified: 0,
        }
    }

    pub(super) fn free(&self) -> usize {
        usize::from(self.free)
    }

    #[inline]
    pub(super) fn post(
        &mut self,
        segments: &[Segment],
        tables: Option<&Tables>,
        slot: Slot,
    ) -> Result<(), NoRoom> {
        if slot.descriptors > self.free {
            return Err(NoRoom);
        }
        let id = self.slots.put(slot).ok_or(NoRoom)?;
        match tables {
            Some(tables) => {
                let rest = tables.fill_packed(id, segments, self.available.available_bits());
                self.put(tables.address(id), rest);
            }
            None => {
                for (segment, flags, _) in descriptors(segments) {
                    let flags = flags | self.available.available_bits();
                    self.put(segment.address, segment.rest(flags, Link::Packed(id)));
                }
            }
        }
        self.free -= slot.descriptors;
        Ok(())
    }

    /// Writes the next descriptor of the ring. For the first descriptor of a batch, writes only the first half,
    /// so that the descriptor does not become available yet.
    #[inline(always)]
    fn put(&mut self, address: u64, rest: u64) {
        let at = usize::from(self.available.index) * DESCRIPTOR_BYTES;
        self.areas.descriptors.word64(at).store(address.to_le(), Ordering::Relaxed);
        if self.first.is_none() {
            self.first = Some((self.available.index, rest));
        } else {
            let half = self.areas.descriptors.word64(at + 8);
            half.store(rest.to_le(), Ordering::Relaxed);
        }
        self.available = self.available.ahead(1, self.size);
        self.unpublished += 1;
    }

    #[inline]
    pub(super) fn publish(&mut self) {
        if let Some((index, rest)) = self.first.take() {
            let at = usize::from(index) * DESCRIPTOR_BYTES + 8;
            self.areas.descriptors.word64(at).store(rest.to_le(), Ordering::Release);
            self.published = self.available;
            let more = std::mem::take(&mut self.unpublished);
            self.unnotified = self.unnotified.saturating_add(more);
        }
    }

    #[inline]
    pub(super) fn needs_notify(&mut self) -> bool {
        let passed = std::mem::take(&mut self.unnotified);
        if passed == 0 {
            return false;
        }
        // The descriptors must be visible before the device's event index is read. The device writes and
        // reads in the opposite order, so at least one side sees the other's write.
        fence(Ordering::SeqCst);
        let event = u32::from_le(self.areas.device.word32(0).load(Ordering::Relaxed));
        packed_passes(event, self.published, passed, self.size, self.event_index)
    }

    /// Returns the next descriptor that the device has used; `None` if the device has not used it yet.
    #[inline]
    fn next_used(&self) -> Option<Descriptor> {
        let at = usize::from(self.used.index) * DESCRIPTOR_BYTES + 8;
        let rest = u64::from_le(self.areas.descriptors.word64(at).load(Ordering::Acquire));
        let descriptor = Descriptor::packed(0, rest);
        let is_used = descriptor.flags & (AVAILABLE | USED) == self.used.both_bits();
        is_used.then_some(descriptor)
    }

    #[inline]
    pub(super) fn take_used(&mut self) -> Result<Option<Used>, InvalidUsed> {
        // If no chain is in flight, no descriptor can be used, although the bits in fresh memory may look so.
        if self.free == self.size {
            return Ok(None);
        }
        let Some(used) = self.next_used() else { return Ok(None) };
        let id = u32::from(used.link);
        let slot = self.slots.remove(id).ok_or(InvalidUsed::UnknownId { id })?;
        self.used = self.used.ahead(slot.descriptors, self.size);
        self.free += slot.descriptors;
        written(slot, used.bytes).map(Some)
    }

    #[inline(always)]
    pub(super) fn recycle(&mut self) -> Result<Option<Used>, InvalidUsed> {
        if self.free == self.size {
            return Ok(None);
        }
        let Some(used) = self.next_used() else { return Ok(None) };
        let id = u32::from(used.link);
        let slot = self.slots.get(id).ok_or(InvalidUsed::UnknownId { id })?;
        if !slot.is_single {
            return self.take_used();
        }
        self.used = self.used.ahead(1, self.size);
        let segment =
            Segment { address: slot.address, bytes: slot.writable_bytes, is_writable: true };
        let flags = WRITE | self.available.available_bits();
        self.put(segment.address, segment.rest(flags, Link::Packed(used.link)));
        written(slot, used.bytes).map(Some)
    }

    pub(super) fn disable_notifications(&mut self) {
        self.areas.driver.word32(0).store((FLAG_DISABLE << 16).to_le(), Ordering::Relaxed);
    }

    pub(super) fn enable_notifications(&mut self) -> bool {
        let event = if self.event_index {
            FLAG_DESCRIPTOR << 16 | self.used.off_wrap()
        } else {
            FLAG_ENABLE << 16
        };
        self.areas.driver.word32(0).store(event.to_le(), Ordering::Relaxed);
        // The same ordering as in `needs_notify`, with the two sides exchanged.
        fence(Ordering::SeqCst);
        self.free < self.size && self.next_used().is_some()
    }
}
