//! The device side of a queue: copies frames that a driver sends, and fills buffers that the driver posts.
//!
//! [`DeviceQueue`] processes chains (of descriptors) in the order in which they were made available, and returns them
//! in this order. Returned chains are written at once, but become visible to the driver only by
//! [`DeviceQueue::publish`], all of them at one moment: a driver must not see half a packet that fills several buffers.

mod inflight;
mod logged;
mod packed;
mod ring;
mod split;
mod walk;
mod writer;

use std::sync::Arc;

pub use inflight::{InflightError, inflight_bytes};
use logged::{Logged, Written};
use packed::PackedDevice;
use ring::Ring;
use split::SplitDevice;
use walk::{Access, Walk};
pub use writer::{Overrun, Writer};

use crate::config::{ConfigError, DESCRIPTOR_BYTES, Layout, QueueConfig};
use crate::invalid::{InvalidChain, InvalidCounts};
use crate::memory::{DirtyLog, Mapping, Memory};
use crate::ring::Position;

/// The position in a ring at which a device begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The device begins at the start of an unused ring.
    Start,
    /// The position at which another device stopped, in the form of `VHOST_USER_SET_VRING_BASE`. For a split
    /// ring, the used index is read from memory. For a packed ring, the used position equals the available
    /// position (low 16 bits), as no chain is in flight.
    Vring(u32),
}

/// The result of [`DeviceQueue::take`], which copies the next frame from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The driver has made no chain available.
    Empty,
    /// A frame was copied. The number is its length in bytes, including the virtio-net header.
    Frame(usize),
    /// A chain broke a rule. The chain was counted, and returned to the driver if that was possible.
    Invalid(InvalidChain),
}

/// The permitted distribution of one packet over the driver's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The packet must fit in one chain (without `VIRTIO_NET_F_MRG_RXBUF`).
    OneChain,
    /// The packet may take several chains (`VIRTIO_NET_F_MRG_RXBUF`, section 5.1.6.3.2).
    Merged {
        /// The offset of `num_buffers` in the packet, in bytes. [`Writer::finish`] writes these two bytes,
        /// little-endian.
        count_at: u32,
    },
}

/// The reason for which [`DeviceQueue::reserve`] cannot reserve buffers. No valid chain was consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The driver has posted no buffers. It may post more.
    NoBuffers,
    /// The posted buffers together are too small for the packet. The buffers stay posted, and the driver may
    /// post more.
    TooFew {
        /// The total capacity of the posted buffers, in bytes.
        capacity: u32,
        /// `true` if more buffers are unlikely: either the driver has processed all returned buffers and waits,
        /// or every descriptor of the queue is posted.
        is_all: bool,
    },
    /// The next chain is too small for the packet, and the packet must fit in one chain. The chain stays
    /// posted.
    DoesNotFit {
        /// The capacity of the chain, in bytes.
        capacity: u32,
    },
    /// A chain broke a rule. The chain was counted and returned to the driver empty, together with the chains
    /// gathered before it. Another attempt may succeed.
    Invalid(InvalidChain),
}

/// The device side of one queue, which copies frames and fills buffers.
#[derive(Debug)]
pub struct DeviceQueue {
    ring: Ring,
    size: u16,
    walk: Walk,
    chains: Vec<Chain>,
    /// The position at which the last [`DeviceQueue::reserve`] found no further chains.
    looked_to: Position,
    is_broken: bool,
    invalid: InvalidCounts,
    /// The log of the queue's writes; `None` while no migration is in progress.
    logged: Option<Box<Logged>>,
    config: QueueConfig,
}

/// A chain of buffers that is about to be filled.
#[derive(Clone, Copy, Debug)]
struct Chain {
    head: Head,
    writable_bytes: u32,
    /// The position of the chain that follows this one.
    after: Position,
}

/// The values of a chain that are needed to return it to the driver.
#[derive(Clone, Copy, Debug)]
struct Head {
    id: u16,
    /// The number of descriptors that the chain occupies in the ring; 1 in a split ring.
    descriptors: u16,
}

/// The entry that was read from the ring at a cursor. The cursor then points past this entry.
enum RingEntry {
    Empty,
    Chain(Head),
    Invalid(InvalidChain, Option<Head>),
    /// The ring is so invalid that no further chain can be located.
    Broken(InvalidChain),
}

impl DeviceQueue {
    /// Creates a queue whose rings are at the addresses in `config`. Allocates. Does not change the setting
    /// in memory that decides if the driver notifies; call [`DeviceQueue::enable_notifications`] before
    /// waiting.
    ///
    /// # Errors
    /// If the size is invalid, if an area is not inside one region, or if `base` is not a position in the
    /// ring.
    pub fn new(memory: &Memory, config: &QueueConfig, base: Base) -> Result<Self, ConfigError> {
        let areas = config.areas(memory)?;
        let ring = match config.layout {
            Layout::Split => Ring::Split(SplitDevice::new(areas, config, base)),
            Layout::Packed => Ring::Packed(PackedDevice::new(areas, config, base)?),
        };
        Ok(Self {
            looked_to: ring.cursor(),
            ring,
            size: config.size,
            walk: Walk::new(config.size),
            chains: Vec::with_capacity(usize::from(config.size)),
            is_broken: false,
            invalid: InvalidCounts::default(),
            logged: None,
            config: *config,
        })
    }

    /// Marks all later writes of the queue in `log`: buffers, used descriptors and notification settings. The
    /// queue's device area is marked as if it were at guest address `device_at`; if `device_at` is `None`, the
    /// area is marked at its own address. Call [`DeviceQueue::publish`] first. Allocates.
    pub fn log_to(&mut self, log: Option<DirtyLog>, device_at: Option<u64>) {
        let QueueConfig { descriptors, device, .. } = self.config;
        let device = device_at.unwrap_or(device);
        self.logged = log.map(|log| Box::new(Logged { log, descriptors, device }));
    }

    /// Records the chains in flight in the region of this queue, at `offset` in `mapping`, which outlives this
    /// device. The region needs [`inflight_bytes`]. Chains that a previous device recorded there and did not
    /// return are the next chains of the queue. Call this before any other method except
    /// [`DeviceQueue::log_to`]. Allocates.
    ///
    /// # Errors
    /// If the region exceeds the mapping or is unaligned, is of another version or queue size, or is
    /// inconsistent.
    pub fn track(&mut self, mapping: &Arc<Mapping>, offset: u64) -> Result<(), InflightError> {
        self.ring.track(mapping, offset)?;
        self.looked_to = self.ring.cursor();
        if let Some(logged) = &self.logged {
            // Descriptors of a packed ring may have been restored.
            logged.mark(Written::Descriptors(0, usize::from(self.size) * DESCRIPTOR_BYTES));
        }
        Ok(())
    }

    /// Copies the readable bytes of the next chain to the start of `into` and returns the chain to the driver
    /// (visible after [`DeviceQueue::publish`]). The driver cannot change the copy. At most as many descriptors
    /// are followed as the queue has, and at most 4,096. Allocates only for a chain that is longer than all
    /// chains before.
    #[inline]
    pub fn take(&mut self, memory: &Memory, into: &mut [u8]) -> Taken {
        self.walk.start(Access::Read);
        let chain = match self.next_chain(memory, &mut self.ring.cursor()) {
            Ok(Some(chain)) => chain,
            Ok(None) => return Taken::Empty,
            Err(kind) => return Taken::Invalid(kind),
        };
        // Copied before the ring is written, because rings and buffers of a hostile driver may overlap.
        let copied = self.copy_to(memory, into);
        self.ring.consume(chain.after);
        self.ring.put_used(chain.head, 0);
        match copied {
            Ok(bytes) => Taken::Frame(bytes),
            Err(kind) => {
                self.invalid.count(kind);
                Taken::Invalid(kind)
            }
        }
    }

    #[inline]
    fn copy_to(&self, memory: &Memory, into: &mut [u8]) -> Result<usize, InvalidChain> {
        let bytes = self.walk.readable_bytes as usize;
        if bytes == 0 {
            return Err(InvalidChain::NothingReadable);
        }
        let Some(mut rest) = into.get_mut(..bytes) else {
            return Err(InvalidChain::FrameTooLarge);
        };
        for &place in &self.walk.places {
            let (part, after) = rest.split_at_mut(place.bytes as usize);
            if !memory.read_place(place, part) {
                return Err(InvalidChain::OutsideMemory);
            }
            rest = after;
        }
        Ok(bytes)
    }

    /// Reserves buffers for a packet of `bytes` bytes, including the header before it, and returns a writer
    /// into them. Nothing is consumed before [`Writer::finish`]; dropping the writer leaves all buffers
    /// posted. Examines at most as many chains as the queue has descriptors, and at most 4,096 descriptors.
    ///
    /// # Errors
    /// If the buffers do not suffice, or a chain is invalid.
    #[inline]
    pub fn reserve<'q>(
        &'q mut self,
        memory: &'q Memory,
        bytes: u32,
        fit: Fit,
    ) -> Result<Writer<'q>, Refused> {
        self.reserve_with(memory, (bytes, fit), |queue, cursor| {
            let Self { ring, walk, is_broken, .. } = &mut *queue;
            match ring.next_single(memory, cursor, walk).filter(|_| !*is_broken) {
                Some(chain) => Ok(Some(chain)),
                None => queue.next_writable(memory, cursor),
            }
        })
    }

    /// Reserves buffers like [`DeviceQueue::reserve`]; `next` returns the next chain at a position.
    #[inline(always)]
    fn reserve_with<'q>(
        &'q mut self,
        memory: &'q Memory,
        (bytes, fit): (u32, Fit),
        mut next: impl FnMut(&mut Self, &mut Position) -> Result<Option<Chain>, InvalidChain>,
    ) -> Result<Writer<'q>, Refused> {
        self.walk.start(Access::Write);
        self.chains.clear();
        let (mut cursor, mut capacity) = (self.ring.cursor(), 0_u32);
        loop {
            let chain = match next(self, &mut cursor) {
                Ok(Some(chain)) => chain,
                Ok(None) => return Err(self.too_few(capacity, cursor)),
                Err(kind) => return Err(Refused::Invalid(kind)),
            };
            self.chains.push(chain);
            capacity = capacity.saturating_add(chain.writable_bytes);
            if capacity >= bytes {
                return Ok(Writer::new(self, memory, fit));
            }
            if fit == Fit::OneChain {
                return Err(Refused::DoesNotFit { capacity });
            }
            if self.chains.len() == usize::from(self.size) {
                return Err(self.too_few(capacity, cursor));
            }
        }
    }

    /// Returns the next valid chain at `cursor` if the device can write to it; `None` if no chain is
    /// available. Not inlined, because nearly all chains are single buffers, which [`Ring::next_single`]
    /// handles.
    #[inline(never)]
    fn next_writable(
        &mut self,
        memory: &Memory,
        cursor: &mut Position,
    ) -> Result<Option<Chain>, InvalidChain> {
        let chain = self.next_chain(memory, cursor)?;
        if let Some(chain) = chain.filter(|chain| chain.writable_bytes == 0) {
            let kind = InvalidChain::NothingWritable;
            self.return_gathered(kind, Some(chain.head), *cursor);
            return Err(kind);
        }
        Ok(chain)
    }

    /// Returns the error for a packet that does not fit into the chains up to `cursor`, whose capacity is
    /// `capacity` bytes.
    #[cold]
    fn too_few(&mut self, capacity: u32, cursor: Position) -> Refused {
        self.looked_to = cursor;
        if capacity == 0 {
            return Refused::NoBuffers;
        }
        let is_idle = !self.ring.has_unpublished() && self.backlog() == Some(0);
        let is_all = is_idle || self.chains.len() == usize::from(self.size);
        Refused::TooFew { capacity, is_all }
    }

    /// Returns the next valid chain at `cursor`; `None` if no chain is available. An invalid chain is counted
    /// and returned to the driver; the error is the rule that it breaks.
    #[inline(always)]
    fn next_chain(
        &mut self,
        memory: &Memory,
        cursor: &mut Position,
    ) -> Result<Option<Chain>, InvalidChain> {
        if self.is_broken {
            return Ok(None);
        }
        match self.ring.next(memory, cursor, &mut self.walk) {
            RingEntry::Empty => Ok(None),
            RingEntry::Chain(head) => {
                let writable_bytes = self.walk.writable_bytes;
                Ok(Some(Chain { head, writable_bytes, after: *cursor }))
            }
            RingEntry::Invalid(kind, head) => {
                if self.walk.is_writing() {
                    self.return_gathered(kind, head, *cursor);
                } else {
                    self.return_empty(kind, head, *cursor);
                }
                Err(kind)
            }
            RingEntry::Broken(kind) => {
                self.is_broken = true;
                self.invalid.count(kind);
                Err(kind)
            }
        }
    }

    /// Returns to the driver, empty, the chains that were gathered so far and the invalid chain after them.
    /// Counts the invalid chain.
    #[cold]
    fn return_gathered(&mut self, kind: InvalidChain, head: Option<Head>, after: Position) {
        for chain in self.chains.drain(..) {
            self.ring.put_used(chain.head, 0);
        }
        self.return_empty(kind, head, after);
    }

    #[cold]
    fn return_empty(&mut self, kind: InvalidChain, head: Option<Head>, after: Position) {
        self.invalid.count(kind);
        self.ring.consume(after);
        if let Some(head) = head {
            self.ring.put_used(head, 0);
        }
    }

    /// Makes all returned chains visible to the driver, at one moment. Call it once per batch.
    #[inline]
    pub fn publish(&mut self) {
        match self.logged {
            None => self.ring.publish(),
            Some(_) => self.publish_logged(),
        }
    }

    #[cold]
    fn publish_logged(&mut self) {
        let written = self.ring.unpublished();
        self.ring.publish();
        if let Some(logged) = &self.logged {
            written.into_iter().for_each(|written| logged.mark(written));
        }
    }

    /// Marks the first `bytes` bytes of the collected buffers, which were written. This is not a method of the
    /// writer, so the writer's fields can stay in registers.
    #[cold]
    #[inline(never)]
    fn mark_buffers(&self, memory: &Memory, bytes: u32) {
        if let Some(logged) = &self.logged {
            logged.mark_buffers(memory, &self.walk.places, bytes);
        }
    }

    /// Marks the queue's notification setting as written, in the log of dirty pages.
    fn mark_setting(&self) {
        if let Some(logged) = &self.logged {
            logged.mark(self.ring.setting());
        }
    }

    /// Returns `true` if the driver must be notified of the chains published since the last call (sections
    /// 2.7.7, 2.8.10). Exact with the event index; otherwise the driver's flag decides.
    #[inline]
    pub fn needs_notify(&mut self) -> bool {
        self.ring.needs_notify()
    }

    /// Asks the driver not to send notifications. The driver may still send some.
    pub fn disable_notifications(&mut self) {
        self.ring.disable_notifications();
        self.mark_setting();
    }

    /// Asks the driver to notify when it makes the next chain available. Returns `true` if a chain is available
    /// already. The driver does not notify of such a chain, so the caller must process it before it waits.
    #[must_use]
    pub fn enable_notifications(&mut self) -> bool {
        let next = self.ring.cursor();
        self.enable_at(next)
    }

    /// Asks the driver to notify when it posts more buffers than the last [`DeviceQueue::reserve`] found, which
    /// were too few. Returns `true` if such a buffer is available already; the driver does not notify of it.
    #[must_use]
    pub fn enable_notifications_of_more(&mut self) -> bool {
        self.enable_at(self.looked_to)
    }

    fn enable_at(&mut self, of: Position) -> bool {
        let is_there = self.ring.enable_notifications(of);
        self.mark_setting();
        is_there && !self.is_broken
    }

    /// Returns the number of published chains that the driver has not processed, at most the queue size,
    /// derived from the event index that the driver set. 0 means that the driver has processed all chains and
    /// waits. A busy driver updates its index late, so the number may be too large. `None` if the event index
    /// was not negotiated or the driver does not use it.
    #[must_use]
    pub fn backlog(&self) -> Option<u16> {
        self.ring.backlog()
    }

    /// Returns the position at which the next device would continue, in the form of
    /// `VHOST_USER_GET_VRING_BASE`. Call [`DeviceQueue::publish`] first.
    #[must_use]
    pub fn base(&self) -> u32 {
        self.ring.base()
    }

    /// Returns `true` if the ring is so invalid that its next chain cannot be located. The queue then yields
    /// no chains until it is created anew.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns the number of invalid chains of each kind.
    #[must_use]
    pub const fn invalid(&self) -> &InvalidCounts {
        &self.invalid
    }
}

#[cfg(test)]
impl DeviceQueue {
    /// Reserves buffers for a packet like [`DeviceQueue::reserve`], without the fast path.
    pub(crate) fn reserve_by_rules<'q>(
        &'q mut self,
        memory: &'q Memory,
        bytes: u32,
        fit: Fit,
    ) -> Result<Writer<'q>, Refused> {
        self.reserve_with(memory, (bytes, fit), |queue, cursor| queue.next_writable(memory, cursor))
    }
}
