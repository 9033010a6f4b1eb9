//! The device side of a split ring (VIRTIO 1.2, section 2.7).

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::inflight::{InflightError, SplitInflight};
use super::walk::{Rules, Walk};
use super::{Base, Chain, Head, InvalidChain, RingEntry, Written};
use crate::config::{Areas, QueueConfig};
use crate::memory::{Mapping, Memory};
use crate::notify::split_passes;
use crate::ring::{Descriptor, ENTRIES_AT, INDEX_AT, INDIRECT, NEXT, NO_NOTIFICATION, Position};

/// The state of a split ring on the device side. Indices count modulo 2¹⁶, not modulo the ring size.
#[derive(Debug)]
pub(super) struct SplitDevice {
    areas: Areas,
    rules: Rules,
    event_index: bool,
    /// The index of the next entry of the available ring that the device consumes.
    next_available: u16,
    /// The available index as the device last read it. Entries before it may be read.
    known_available: u16,
    /// The index of the next entry of the used ring that the device writes.
    next_used: u16,
    /// The used index in memory, which the driver can see.
    published: u16,
    /// The number of used entries published since the last call of `needs_notify`.
    unnotified: u32,
    /// The record of chains in flight, for the next device; `None` if no record is kept.
    inflight: Option<Box<SplitInflight>>,
}

impl SplitDevice {
    pub(super) fn new(areas: Areas, config: &QueueConfig, base: Base) -> Self {
        let (available, used) = match base {
            Base::Start => (0, 0),
            Base::Vring(base) => {
                (base as u16, u16::from_le(areas.device.half(INDEX_AT).load(Ordering::Acquire)))
            }
        };
        Self {
            areas,
            rules: Rules { size: config.size, indirect: config.indirect, is_packed: false },
            event_index: config.event_index,
            next_available: available,
            known_available: available,
            next_used: used,
            published: used,
            unnotified: 0,
            inflight: None,
        }
    }

    /// Continues with the chains that the previous device has recorded as in flight, and records chains from
    /// now on.
    pub(super) fn track(
        &mut self,
        mapping: &Arc<Mapping>,
        offset: u64,
    ) -> Result<(), InflightError> {
        let inflight = SplitInflight::load(mapping, offset, self.rules.size, self.published)?;
        // All entries before this index were returned, and all entries after it are still available.
        self.next_available = self.published;
        self.known_available = inflight.end();
        self.inflight = Some(Box::new(inflight));
        Ok(())
    }

    pub(super) fn base(&self) -> u32 {
        u32::from(self.next_available)
    }

    #[inline]
    pub(super) const fn cursor(&self) -> Position {
        Position { index: self.next_available, wrap: true }
    }

    #[inline(always)]
    pub(super) fn next(
        &mut self,
        memory: &Memory,
        cursor: &mut Position,
        walk: &mut Walk,
    ) -> RingEntry {
        if cursor.index == self.known_available {
            let available = self.available_index();
            let pending = available.wrapping_sub(self.next_available);
            // The cursor may be ahead of the consumed entries. The available index must not be behind the
            // cursor.
            let seen = cursor.index.wrapping_sub(self.next_available);
            if pending > self.rules.size || pending < seen {
                return RingEntry::Broken(InvalidChain::AvailableIndex);
            }
            self.known_available = available;
            if cursor.index == available {
                return RingEntry::Empty;
            }
        }
        let at = ENTRIES_AT + 2 * usize::from(cursor.index & (self.rules.size - 1));
        let mut head = u16::from_le(self.areas.driver.half(at).load(Ordering::Relaxed));
        if self.inflight.is_some() {
            head = self.again(cursor.index).unwrap_or(head);
        }
        cursor.index = cursor.index.wrapping_add(1);
        if head >= self.rules.size {
            return RingEntry::Invalid(InvalidChain::DescriptorIndex, None);
        }
        let entry = Head { id: head, descriptors: 1 };
        walk.begin_chain();
        match self.follow(memory, head, walk) {
            Ok(()) => RingEntry::Chain(entry),
            Err(kind) => RingEntry::Invalid(kind, Some(entry)),
        }
    }

    #[cold]
    #[inline(never)]
    fn again(&self, index: u16) -> Option<u16> {
        self.inflight.as_ref()?.again(index)
    }

    #[inline(always)]
    pub(super) fn next_single(
        &self,
        memory: &Memory,
        cursor: &mut Position,
        walk: &mut Walk,
    ) -> Option<Chain> {
        if cursor.index == self.known_available || self.inflight.is_some() {
            return None;
        }
        let at = ENTRIES_AT + 2 * usize::from(cursor.index & (self.rules.size - 1));
        let id = u16::from_le(self.areas.driver.half(at).load(Ordering::Relaxed));
        if id >= self.rules.size {
            return None;
        }
        let descriptor = Descriptor::of_split(&self.areas.descriptors, id);
        let writable_bytes = walk.add_single(memory, descriptor)?;
        cursor.index = cursor.index.wrapping_add(1);
        let head = Head { id, descriptors: 1 };
        Some(Chain { head, writable_bytes, after: *cursor })
    }

    #[inline]
    fn follow(&self, memory: &Memory, head: u16, walk: &mut Walk) -> Result<(), InvalidChain> {
        let mut index = head;
        for before in 0..self.rules.size {
            let descriptor = Descriptor::of_split(&self.areas.descriptors, index);
            if descriptor.flags & INDIRECT != 0 {
                if descriptor.flags & NEXT != 0 {
                    return Err(InvalidChain::IndirectChained);
                }
                return walk.add_table(memory, descriptor, self.rules.size - before, self.rules);
            }
            walk.add(memory, descriptor)?;
            if descriptor.flags & NEXT == 0 {
                return Ok(());
            }
            index = descriptor.link;
            if index >= self.rules.size {
                return Err(InvalidChain::DescriptorIndex);
            }
        }
        Err(InvalidChain::TooLong)
    }

    #[inline]
    fn available_index(&self) -> u16 {
        u16::from_le(self.areas.driver.half(INDEX_AT).load(Ordering::Acquire))
    }

    #[inline]
    pub(super) const fn consume(&mut self, to: Position) {
        self.next_available = to.index;
    }

    #[inline]
    pub(super) fn put_used(&mut self, head: Head, written: u32) {
        let at = ENTRIES_AT + 8 * usize::from(self.next_used & (self.rules.size - 1));
        let used = &self.areas.device;
        used.word32(at).store(u32::from(head.id).to_le(), Ordering::Relaxed);
        used.word32(at + 4).store(written.to_le(), Ordering::Relaxed);
        self.next_used = self.next_used.wrapping_add(1);
        if self.inflight.is_some() {
            self.record(head.id);
        }
    }

    #[cold]
    #[inline(never)]
    fn record(&mut self, head: u16) {
        self.inflight.iter_mut().for_each(|inflight| inflight.record(head));
    }

    pub(super) fn unpublished(&self) -> [Written; 3] {
        let (first, size) = (self.published & (self.rules.size - 1), self.rules.size);
        let count = u32::from(self.next_used.wrapping_sub(self.published));
        if count == 0 {
            return [Written::NOTHING; 3];
        }
        let [now, then] = Written::entries((ENTRIES_AT, 8, size), first, count, Written::Device);
        [Written::Device(INDEX_AT, 2), now, then]
    }

    pub(super) fn setting(&self) -> Written {
        let event = ENTRIES_AT + 8 * usize::from(self.rules.size);
        Written::Device(if self.event_index { event } else { 0 }, 2)
    }

    #[inline]
    pub(super) fn publish(&mut self) {
        let more = self.next_used.wrapping_sub(self.published);
        if more > 0 {
            self.areas.device.half(INDEX_AT).store(self.next_used.to_le(), Ordering::Release);
            self.published = self.next_used;
            if self.inflight.is_some() {
                self.record_publication();
            }
            self.unnotified = self.unnotified.saturating_add(u32::from(more));
        }
    }

    #[cold]
    #[inline(never)]
    fn record_publication(&mut self) {
        self.inflight.iter_mut().for_each(|inflight| inflight.publish(self.published));
    }

    #[inline]
    pub(super) fn needs_notify(&mut self) -> bool {
        let passed = std::mem::take(&mut self.unnotified);
        if passed == 0 {
            return false;
        }
        // The index must be visible before the driver's event index is read. The driver writes and reads in
        // the opposite order, so at least one side sees the other's write.
        fence(Ordering::SeqCst);
        if self.event_index {
            split_passes(self.used_event(), self.published, passed)
        } else {
            let flags = u16::from_le(self.areas.driver.half(0).load(Ordering::Relaxed));
            flags & NO_NOTIFICATION == 0
        }
    }

    #[inline]
    fn used_event(&self) -> u16 {
        let at = ENTRIES_AT + 2 * usize::from(self.rules.size);
        u16::from_le(self.areas.driver.half(at).load(Ordering::Relaxed))
    }

    pub(super) fn backlog(&self) -> Option<u16> {
        let behind = self.published.wrapping_sub(self.used_event());
        self.event_index.then(|| behind.min(self.rules.size))
    }

    pub(super) fn disable_notifications(&mut self) {
        // With the event index this flag is not used.
        if !self.event_index {
            self.areas.device.half(0).store(NO_NOTIFICATION.to_le(), Ordering::Relaxed);
        }
    }

    pub(super) const fn has_unpublished(&self) -> bool {
        self.next_used != self.published
    }

    /// Asks the driver to notify when it makes the entry at position `of` available. Returns `true` if that
    /// entry is available already.
    pub(super) fn enable_notifications(&mut self, of: Position) -> bool {
        let used = &self.areas.device;
        if self.event_index {
            let at = ENTRIES_AT + 8 * usize::from(self.rules.size);
            used.half(at).store(of.index.to_le(), Ordering::Relaxed);
        } else {
            used.half(0).store(0, Ordering::Relaxed);
        }
        // The same ordering as in `needs_notify`, with the two sides exchanged.
        fence(Ordering::SeqCst);
        self.available_index() != of.index
    }
}
