//! The device's side of a queue: takes frames that a driver sends, and fills buffers that it posts.
//!
//! [`DeviceQueue`] consumes chains in the order in which they were made available, and returns them in
//! this order. What it returns is written at once but becomes visible to the driver only with
//! [`DeviceQueue::publish`], all of it at one moment: a driver must not find half a packet that fills
//! several buffers.

mod packed;
mod split;
mod walk;
mod writer;

use packed::PackedDevice;
use split::SplitDevice;
use walk::{Access, Walk};
pub use writer::{Overrun, Writer};

use crate::config::{ConfigError, Layout, QueueConfig};
use crate::invalid::{InvalidChain, InvalidCounts};
use crate::memory::Memory;
use crate::ring::Position;

/// The position in a ring at which a device begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The beginning of a ring that nobody has used.
    Start,
    /// The position at which another device stopped: the value of `VHOST_USER_SET_VRING_BASE`. A split ring's used
    /// index is read from its memory. In a packed ring used descriptors follow from the available position (low 16
    /// bits), as nothing is in flight.
    Vring(u32),
}

/// The result of [`DeviceQueue::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// No chain is available.
    Empty,
    /// A frame of this length was copied, including the header before it.
    Frame(usize),
    /// A chain broke a rule. It was counted and returned to the driver, if it could be.
    Invalid(InvalidChain),
}

/// The permitted layout of a packet in the driver's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The packet must fit in one chain (without `VIRTIO_NET_F_MRG_RXBUF`).
    OneChain,
    /// The packet may take several chains (`VIRTIO_NET_F_MRG_RXBUF`, section 5.1.6.3.2).
    Merged {
        /// The offset of the packet's `num_buffers`, in bytes. Two bytes there are written at the end, little-endian.
        count_at: u32,
    },
}

/// The reason why [`DeviceQueue::reserve`] cannot place a packet. Nothing valid was consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The driver has posted no buffers. More may come.
    NoBuffers,
    /// The posted buffers are too small together. They are still there, and more may come.
    TooFew {
        /// The capacity of the posted buffers, in bytes.
        capacity: u32,
        /// True if more buffers are unlikely to come by themselves: the driver has consumed everything that was
        /// returned and waits, or each descriptor of the queue is posted.
        is_all: bool,
    },
    /// The next chain is too small for the packet, and only one may be used. It is still there.
    DoesNotFit {
        /// The chain's capacity, in bytes.
        capacity: u32,
    },
    /// A chain broke a rule. It was counted, and returned to the driver empty, together with the chains gathered before
    /// it. Another attempt may succeed.
    Invalid(InvalidChain),
}

/// The device's side of one queue.
#[derive(Debug)]
pub struct DeviceQueue {
    ring: Ring,
    size: u16,
    walk: Walk,
    chains: Vec<Chain>,
    /// The position at which the last [`DeviceQueue::reserve`] found no more chains.
    looked_to: Position,
    is_broken: bool,
    invalid: InvalidCounts,
}

/// A chain that is going to be filled.
#[derive(Clone, Copy, Debug)]
struct Chain {
    head: Head,
    writable_bytes: u32,
    /// The position of the next chain.
    after: Position,
}

/// The values that return a chain to the driver.
#[derive(Clone, Copy, Debug)]
struct Head {
    id: u16,
    /// The number of descriptors that the chain takes in the ring; 1 in a split ring.
    descriptors: u16,
}

/// The entry of a ring at a cursor, which then moves behind it.
enum Next {
    Empty,
    Chain(Head),
    Invalid(InvalidChain, Option<Head>),
    /// The ring is so invalid that no further chain can be found.
    Broken(InvalidChain),
}

impl DeviceQueue {
    /// Makes a queue whose rings are where `config` says. Allocates. Notifications of the driver are as the ring's
    /// memory has them; call [`DeviceQueue::enable_notifications`] before waiting for one.
    ///
    /// # Errors
    /// If the size is invalid, if an area is not inside one region, or if `base` is not a position in
    /// the ring.
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
        })
    }

    /// Copies the next chain's readable bytes to the start of `into` and returns the chain to the
    /// driver (visible after [`DeviceQueue::publish`]). The copy is the caller's alone: the driver cannot
    /// change it. A chain is followed for at most as many descriptors as the queue has, and for
    /// 4,096. Does not allocate, once a chain of this length was seen.
    #[inline]
    pub fn take(&mut self, memory: &Memory, into: &mut [u8]) -> Taken {
        self.walk.start(Access::Read);
        let chain = match self.next_chain(memory, &mut self.ring.cursor()) {
            Ok(Some(chain)) => chain,
            Ok(None) => return Taken::Empty,
            Err(kind) => return Taken::Invalid(kind),
        };
        // Copied before the ring is written: rings and buffers of a hostile driver may overlap.
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

    /// Finds buffers for a packet of `bytes`, including the header before it, and returns a writer
    /// into them. Nothing is consumed before [`Writer::finish`]; dropping the writer leaves all
    /// buffers where they are. Looks at no more chains than the queue has descriptors,
    /// and at no more than 4,096 descriptors.
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

    /// Reserves as [`DeviceQueue::reserve`] does, with the chains that `next` finds.
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

    /// Finds the next valid chain at `cursor` if it is writable. Not inlined, since nearly all chains are single
    /// buffers ([`Ring::next_single`]).
    #[inline(never)]
    fn next_writable(
        &mut self,
        memory: &Memory,
        cursor: &mut Position,
    ) -> Result<Option<Chain>, InvalidChain> {
        let chain = self.next_chain(memory, cursor)?;
        if let Some(chain) = chain.filter(|chain| chain.writable_bytes == 0) {
            let kind = InvalidChain::NothingWritable;
            self.give_up(kind, Some(chain.head), *cursor);
            return Err(kind);
        }
        Ok(chain)
    }

    /// Returns the refusal for chains up to `cursor` whose `capacity` is too small.
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

    /// Finds the next valid chain at `cursor`. An invalid chain is counted and returned to the driver, and its fault is
    /// the error.
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
            Next::Empty => Ok(None),
            Next::Chain(head) => {
                let writable_bytes = self.walk.writable_bytes;
                Ok(Some(Chain { head, writable_bytes, after: *cursor }))
            }
            Next::Invalid(kind, head) => {
                if self.walk.is_writing() {
                    self.give_up(kind, head, *cursor);
                } else {
                    self.return_empty(kind, head, *cursor);
                }
                Err(kind)
            }
            Next::Broken(kind) => {
                self.is_broken = true;
                self.invalid.count(kind);
                Err(kind)
            }
        }
    }

    /// Returns the chains gathered so far and the invalid one after them, all empty.
    #[cold]
    fn give_up(&mut self, kind: InvalidChain, head: Option<Head>, after: Position) {
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

    /// Shows the driver everything that was returned, at one moment. Call it once for each batch.
    #[inline]
    pub fn publish(&mut self) {
        self.ring.publish();
    }

    /// Returns true if the driver must be notified of the entries published since the last call (section 2.7.7,
    /// 2.8.10). Exact with the event index; otherwise the driver's flag decides.
    #[inline]
    pub fn needs_notify(&mut self) -> bool {
        self.ring.needs_notify()
    }

    /// Asks the driver not to notify. A driver may do so all the same.
    pub fn disable_notifications(&mut self) {
        self.ring.disable_notifications();
    }

    /// Asks the driver to notify of the next chain that it makes available. Returns `true` if one is
    /// available already: then no notification comes for it, and the caller must work before it waits.
    #[must_use]
    pub fn enable_notifications(&mut self) -> bool {
        let next = self.ring.cursor();
        self.ring.enable_notifications(next) && !self.is_broken
    }

    /// Asks the driver to notify of the next buffer that it posts beyond those that the last
    /// [`DeviceQueue::reserve`] found too few. Returns `true` if one is there already, as
    /// [`DeviceQueue::enable_notifications`] does.
    #[must_use]
    pub fn enable_notifications_of_more(&mut self) -> bool {
        self.ring.enable_notifications(self.looked_to) && !self.is_broken
    }

    /// Returns the number of published entries that the driver has not consumed, at most the queue size. It is derived
    /// from the entry that the driver asked to be notified of. 0 means that the driver has consumed all and waits. A
    /// driver at work updates this late, so the number may be too large. `None` if the event index was not negotiated,
    /// or the driver does not use it.
    #[must_use]
    pub fn backlog(&self) -> Option<u16> {
        self.ring.backlog()
    }

    /// Returns the position at which the next device would continue: the value for `VHOST_USER_GET_VRING_BASE`. Call
    /// [`DeviceQueue::publish`] before.
    #[must_use]
    pub fn base(&self) -> u32 {
        self.ring.base()
    }

    /// Returns true if the ring is so invalid that its next chain cannot be found. It stays empty until the queue is
    /// made anew.
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
    /// [`DeviceQueue::reserve`] without its fast path.
    pub(crate) fn reserve_by_rules<'q>(
        &'q mut self,
        memory: &'q Memory,
        bytes: u32,
        fit: Fit,
    ) -> Result<Writer<'q>, Refused> {
        self.reserve_with(memory, (bytes, fit), |queue, cursor| queue.next_writable(memory, cursor))
    }
}

/// Either ring. The calls of a frame go through here, and are predicted.
#[derive(Debug)]
enum Ring {
    Split(SplitDevice),
    Packed(PackedDevice),
}

macro_rules! either {
    ($ring:expr, $side:ident => $call:expr) => {
        match $ring {
            Ring::Split($side) => $call,
            Ring::Packed($side) => $call,
        }
    };
}

impl Ring {
    #[inline]
    const fn cursor(&self) -> Position {
        either!(self, ring => ring.cursor())
    }

    #[inline(always)]
    fn next(&mut self, memory: &Memory, cursor: &mut Position, walk: &mut Walk) -> Next {
        either!(self, ring => ring.next(memory, cursor, walk))
    }

    /// The chain at `cursor`, which is then behind it, if it is a single buffer for writing, inside one region.
    /// Otherwise `None`: nothing has changed, and [`Ring::next`] finds out what there is.
    #[inline(always)]
    fn next_single(
        &self,
        memory: &Memory,
        cursor: &mut Position,
        walk: &mut Walk,
    ) -> Option<Chain> {
        either!(self, ring => ring.next_single(memory, cursor, walk))
    }

    #[inline]
    const fn consume(&mut self, to: Position) {
        either!(self, ring => ring.consume(to));
    }

    #[inline]
    fn put_used(&mut self, head: Head, written: u32) {
        either!(self, ring => ring.put_used(head, written));
    }

    /// Returns as many of `chains`, the next of the ring, as it takes for `bytes`. Returns how many.
    #[inline]
    fn put_filled(&mut self, chains: &[Chain], bytes: u32) -> u16 {
        let (mut buffers, mut left) = (0, bytes);
        either!(self, ring => for chain in chains {
            if left == 0 {
                break;
            }
            let written = left.min(chain.writable_bytes);
            left -= written;
            buffers += 1;
            ring.put_used(chain.head, written);
            ring.consume(chain.after);
        });
        buffers
    }

    #[inline]
    fn publish(&mut self) {
        either!(self, ring => ring.publish());
    }

    #[inline]
    fn needs_notify(&mut self) -> bool {
        either!(self, ring => ring.needs_notify())
    }

    fn disable_notifications(&mut self) {
        either!(self, ring => ring.disable_notifications());
    }

    fn enable_notifications(&mut self, of: Position) -> bool {
        either!(self, ring => ring.enable_notifications(of))
    }

    fn has_unpublished(&self) -> bool {
        either!(self, ring => ring.has_unpublished())
    }

    fn backlog(&self) -> Option<u16> {
        either!(self, ring => ring.backlog())
    }

    fn base(&self) -> u32 {
        either!(self, ring => ring.base())
    }
}
