//! The device side of a packed ring (VIRTIO 1.2, section 2.8).

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::inflight::{InflightError, PackedInflight};
use super::walk::{Rules, Walk};
use super::{Base, Chain, Head, InvalidChain, RingEntry, Written};
use crate::config::{Areas, ConfigError, DESCRIPTOR_BYTES, QueueConfig};
use crate::memory::{Mapping, Memory};
use crate::notify::{FLAG_DESCRIPTOR, FLAG_DISABLE, FLAG_ENABLE, packed_passes};
use crate::ring::{AVAILABLE, Descriptor, INDIRECT, NEXT, Position, USED, WRITE, write_descriptor};

/// The state of a packed ring on the device side.
#[derive(Debug)]
pub(super) struct PackedDevice {
    areas: Areas,
    rules: Rules,
    event_index: bool,
    /// The position in the ring of the next available descriptor to consume.
    available: Position,
    /// The position in the ring at which the next used descriptor is written.
    used: Position,
    /// The position after the last used descriptor that the driver can see.
    published: Position,
    /// The first used descriptor that was not published, with its index in the ring; `None` if all used
    /// descriptors were published. Later used descriptors are already in the ring, but the driver reads the
    /// ring in order, so it does not see them yet.
    first: Option<(u16, u64)>,
    /// The number of descriptors in the chains that were returned but not published.
    unpublished: u32,
    /// The number of descriptors published since the last call of `needs_notify`.
    unnotified: u32,
    /// The record of chains in flight, for the next device; `None` if no record is kept.
    inflight: Option<Box<PackedInflight>>,
}

impl PackedDevice {
    pub(super) fn new(areas: Areas, config: &QueueConfig, base: Base) -> Result<Self, ConfigError> {
        let start = match base {
            Base::Start => Position::START,
            Base::Vring(base) => Position::from_off_wrap(base & 0xffff, config.size)
                .ok_or(ConfigError::Base { base })?,
        };
        Ok(Self {
            areas,
            rules: Rules { size: config.size, indirect: config.indirect, is_packed: true },
            event_index: config.event_index,
            available: start,
            used: start,
            published: start,
            first: None,
            unpublished: 0,
            unnotified: 0,
            inflight: None,
        })
    }

    /// Continues with the chains that the previous device has recorded as in flight, and records chains from
    /// now on.
    pub(super) fn track(
        &mut self,
        mapping: &Arc<Mapping>,
        offset: u64,
    ) -> Result<(), InflightError> {
        let flags_at = |at: Position| (self.rest(at, Ordering::Acquire) >> 48) as u16;
        let inflight =
            PackedInflight::load(mapping, offset, self.rules.size, (self.used, flags_at))?;
        // The previous device may have written used descriptors after the first one of its batch. A driver
        // that gets only the first one would see them, too.
        for (at, descriptor) in inflight.again() {
            let flags = descriptor.flags & !(AVAILABLE | USED) | at.available_bits();
            let rest = Descriptor { flags, ..descriptor }.to_packed();
            write_descriptor(&self.areas.descriptors, at.index.into(), descriptor.address, rest);
        }
        let start = inflight.start();
        (self.available, self.used, self.published) = (start, start, start);
        self.inflight = Some(Box::new(inflight));
        Ok(())
    }

    pub(super) fn base(&self) -> u32 {
        self.available.off_wrap() | self.used.off_wrap() << 16
    }

    #[inline]
    pub(super) const fn cursor(&self) -> Position {
        self.available
    }

    #[inline(always)]
    pub(super) fn next(
        &mut self,
        memory: &Memory,
        cursor: &mut Position,
        walk: &mut Walk,
    ) -> RingEntry {
        let Some(first) = self.available_at(*cursor) else { return RingEntry::Empty };
        walk.begin_chain();
        let (mut descriptor, mut descriptors, mut at) = (first, 1, *cursor);
        let mut outcome = Ok(());
        loop {
            if outcome.is_ok() {
                outcome = self.add(memory, descriptor, descriptors, walk);
            }
            // An invalid list is also followed to its end, where the next chain begins.
            if descriptor.flags & NEXT == 0 {
                break;
            }
            if descriptors == self.rules.size {
                return RingEntry::Broken(InvalidChain::TooLong);
            }
            at = at.ahead(1, self.rules.size);
            descriptors += 1;
            descriptor = self.descriptor(at, self.rest(at, Ordering::Relaxed));
        }
        let head = Head { id: descriptor.link, descriptors };
        *cursor = cursor.ahead(descriptors, self.rules.size);
        match outcome {
            Ok(()) => RingEntry::Chain(head),
            Err(kind) => RingEntry::Invalid(kind, Some(head)),
        }
    }

    #[inline(always)]
    pub(super) fn next_single(
        &self,
        memory: &Memory,
        cursor: &mut Position,
        walk: &mut Walk,
    ) -> Option<Chain> {
        let descriptor = self.available_at(*cursor)?;
        let writable_bytes = walk.add_single(memory, descriptor)?;
        *cursor = cursor.ahead(1, self.rules.size);
        let head = Head { id: descriptor.link, descriptors: 1 };
        Some(Chain { head, writable_bytes, after: *cursor })
    }

    #[inline(always)]
    fn add(
        &self,
        memory: &Memory,
        descriptor: Descriptor,
        descriptors: u16,
        walk: &mut Walk,
    ) -> Result<(), InvalidChain> {
        if descriptor.flags & INDIRECT == 0 {
            return walk.add(memory, descriptor);
        }
        if descriptors > 1 || descriptor.flags & NEXT != 0 {
            return Err(InvalidChain::IndirectChained);
        }
        walk.add_table(memory, descriptor, self.rules.size, self.rules)
    }

    /// Returns the descriptor at position `at`; `None` if the driver has not made it available. If it is
    /// available, the rest of its chain is available too.
    #[inline]
    fn available_at(&self, at: Position) -> Option<Descriptor> {
        let descriptor = self.rest(at, Ordering::Acquire);
        let flags = (descriptor >> 48) as u16;
        let is_available = flags & (AVAILABLE | USED) == at.available_bits();
        is_available.then(|| self.descriptor(at, descriptor))
    }

    #[inline]
    fn rest(&self, at: Position, ordering: Ordering) -> u64 {
        let offset = usize::from(at.index) * DESCRIPTOR_BYTES + 8;
        u64::from_le(self.areas.descriptors.word64(offset).load(ordering))
    }

    #[inline]
    fn descriptor(&self, at: Position, rest: u64) -> Descriptor {
        let offset = usize::from(at.index) * DESCRIPTOR_BYTES;
        let address = self.areas.descriptors.word64(offset).load(Ordering::Relaxed);
        Descriptor::packed(u64::from_le(address), rest)
    }

    #[inline]
    pub(super) const fn consume(&mut self, to: Position) {
        self.available = to;
    }

    #[inline]
    pub(super) fn put_used(&mut self, head: Head, written: u32) {
        if self.inflight.is_some() {
            self.record(head.descriptors);
        }
        // The length is valid only with this flag (section 2.8.4).
        let flags = self.used.both_bits() | if written > 0 { WRITE } else { 0 };
        let used = Descriptor { address: 0, bytes: written, flags, link: head.id }.to_packed();
        if self.first.is_none() {
            self.first = Some((self.used.index, used));
        } else {
            self.store(self.used.index, used, Ordering::Relaxed);
        }
        self.used = self.used.ahead(head.descriptors, self.rules.size);
        self.unpublished = self.unpublished.saturating_add(u32::from(head.descriptors));
    }

    /// Records the chain of `descriptors` descriptors at the used position, before the chain is overwritten.
    /// Chains are returned in order, so the chain is still at the position where it was read.
    #[cold]
    #[inline(never)]
    fn record(&mut self, descriptors: u16) {
        let (start, size) = (self.used, self.rules.size);
        let Some(mut inflight) = self.inflight.take() else { return };
        let read = |n: u16| {
            let at = start.ahead(n, size);
            self.descriptor(at, self.rest(at, Ordering::Relaxed))
        };
        inflight.record(start, (0..descriptors).map(read));
        self.inflight = Some(inflight);
    }

    #[cold]
    #[inline(never)]
    fn publish_recorded(&mut self, index: u16, used: u64) {
        let Some(mut inflight) = self.inflight.take() else { return };
        inflight.begin_publishing(self.used);
        self.store(index, used, Ordering::Release);
        inflight.end_publishing(self.used);
        self.inflight = Some(inflight);
    }

    pub(super) fn unpublished(&self) -> [Written; 3] {
        let from = self.published.linear(self.rules.size);
        let lap = 2 * u32::from(self.rules.size);
        let count = (self.used.linear(self.rules.size) + lap - from) % lap;
        let count = if self.first.is_some() && count == 0 { lap } else { count };
        let ring = (0, DESCRIPTOR_BYTES, self.rules.size);
        let [now, then] = Written::entries(ring, self.published.index, count, Written::Descriptors);
        [now, then, Written::NOTHING]
    }

    #[expect(clippy::unused_self, reason = "as of a split ring, where it depends on the features")]
    pub(super) const fn setting(&self) -> Written {
        Written::Device(0, 4)
    }

    #[inline]
    fn store(&self, index: u16, used: u64, ordering: Ordering) {
        let offset = usize::from(index) * DESCRIPTOR_BYTES + 8;
        self.areas.descriptors.word64(offset).store(used.to_le(), ordering);
    }

    #[inline]
    pub(super) fn publish(&mut self) {
        if let Some((index, used)) = self.first.take() {
            match self.inflight {
                None => self.store(index, used, Ordering::Release),
                Some(_) => self.publish_recorded(index, used),
            }
            self.published = self.used;
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
        // The used descriptors must be visible before the driver's event index is read. The driver writes and
        // reads in the opposite order, so at least one side sees the other's write.
        fence(Ordering::SeqCst);
        packed_passes(self.event(), self.published, passed, self.rules.size, self.event_index)
    }

    #[inline]
    fn event(&self) -> u32 {
        u32::from_le(self.areas.driver.word32(0).load(Ordering::Relaxed))
    }

    pub(super) fn backlog(&self) -> Option<u16> {
        let (size, event) = (self.rules.size, self.event());
        if !self.event_index || event >> 16 == FLAG_ENABLE {
            return None;
        }
        let asked = (event >> 16 == FLAG_DESCRIPTOR)
            .then(|| Position::from_off_wrap(event & 0xffff, size))
            .flatten();
        // A driver that disabled notifications is busy, and its position is unknown.
        let Some(asked) = asked else { return Some(size) };
        let lap = 2 * u32::from(size);
        let behind = (self.published.linear(size) + lap - asked.linear(size)) % lap;
        Some(u16::try_from(behind).map_or(size, |behind| behind.min(size)))
    }

    pub(super) fn disable_notifications(&mut self) {
        self.areas.device.word32(0).store((FLAG_DISABLE << 16).to_le(), Ordering::Relaxed);
    }

    pub(super) const fn has_unpublished(&self) -> bool {
        self.first.is_some()
    }

    /// Asks the driver to notify when it makes the descriptor at position `of` available. Returns `true` if
    /// that descriptor is available already.
    pub(super) fn enable_notifications(&mut self, of: Position) -> bool {
        let event = if self.event_index {
            FLAG_DESCRIPTOR << 16 | of.off_wrap()
        } else {
            FLAG_ENABLE << 16
        };
        self.areas.device.word32(0).store(event.to_le(), Ordering::Relaxed);
        // The same ordering as in `needs_notify`, with the two sides exchanged.
        fence(Ordering::SeqCst);
        self.available_at(of).is_some()
    }
}
