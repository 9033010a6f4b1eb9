//! The driver side of a queue: posts buffers and takes them back.
//!
//! The driver owns the memory that it posts; [`DriverQueue`] only handles guest addresses. The queue does not
//! trust the content of the rings: it uses its own records of ids and buffer sizes.

mod packed;
mod slots;
mod split;
mod tables;

use std::fmt;

use packed::PackedDriver;
use slots::Slot;
use split::SplitDriver;
use tables::Tables;

use crate::config::{ConfigError, IndirectTables, Layout, QueueConfig};
use crate::memory::Memory;

/// A segment of a chain: memory that the device reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The guest address of the segment.
    pub address: u64,
    /// The length of the segment in bytes; not zero.
    pub bytes: u32,
    /// `true` if the device writes this segment. In a chain, writable segments must follow all readable ones
    /// (section 2.7.4.2).
    pub is_writable: bool,
}

/// A chain that the device has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The token with which the caller posted the chain.
    pub token: u32,
    /// The number of bytes that the device reports as written; never more than the chain's capacity.
    pub written_bytes: u32,
}

/// Error: the device broke a rule when it returned a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidUsed {
    /// The used index is ahead of the posted chains. The queue is unusable until it is created anew.
    UsedIndex,
    /// The device returned a chain that is not in flight. The queue is unusable until it is created anew.
    UnknownId {
        /// The id that the device returned.
        id: u32,
    },
    /// The device reports that it has written more bytes than the chain's capacity. The chain was taken back,
    /// but its contents must not be used.
    TooLong {
        /// The token with which the caller posted the chain.
        token: u32,
        /// The number of bytes that the device reports as written.
        claimed_bytes: u32,
    },
}

/// Error: the queue has too few free descriptors for the chain, or the chain has no segments. Nothing was
/// posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no free descriptors in the queue")
    }
}

impl std::error::Error for NoRoom {}

/// The driver side of one queue, which posts chains of buffers.
#[derive(Debug)]
pub struct DriverQueue {
    ring: Ring,
    tables: Option<Tables>,
    is_broken: bool,
    invalid: u64,
}

impl DriverQueue {
    /// Creates a queue at the beginning of its rings, whose memory must be zero. `tables` are used for chains
    /// of more than one segment if `config.indirect` is set. Allocates.
    ///
    /// # Errors
    /// If the size is invalid, or an area is not inside one region.
    pub fn new(
        memory: &Memory,
        config: &QueueConfig,
        tables: Option<IndirectTables>,
    ) -> Result<Self, ConfigError> {
        let areas = config.areas(memory)?;
        let tables = tables.filter(|_| config.indirect);
        let tables = tables.map(|place| Tables::new(memory, config, place)).transpose()?;
        let ring = match config.layout {
            Layout::Split => Ring::Split(SplitDriver::new(areas, config)),
            Layout::Packed => Ring::Packed(PackedDriver::new(areas, config)),
        };
        Ok(Self { ring, tables, is_broken: false, invalid: 0 })
    }

    /// Returns the number of free descriptors. A chain needs one descriptor per segment, or a single one if
    /// it uses an indirect table.
    #[must_use]
    pub fn free(&self) -> usize {
        match &self.ring {
            Ring::Split(ring) => ring.free(),
            Ring::Packed(ring) => ring.free(),
        }
    }

    /// Posts a chain of buffers. When the device has returned it, [`DriverQueue::take_used`] returns it with
    /// this `token`. The device sees the chain after [`DriverQueue::publish`]. Does not allocate.
    ///
    /// # Errors
    /// [`NoRoom`] if there are too few free descriptors, or `segments` is empty.
    #[inline]
    pub fn post(&mut self, segments: &[Segment], token: u32) -> Result<(), NoRoom> {
        let tables = self.tables.as_ref();
        let tables = tables.filter(|tables| segments.len() > 1 && tables.hold(segments.len()));
        let descriptors = if tables.is_some() { 1 } else { segments.len() };
        let descriptors = u16::try_from(descriptors).ok().filter(|&n| n > 0).ok_or(NoRoom)?;
        let writable = segments.iter().filter(|segment| segment.is_writable);
        let writable_bytes = writable.map(|segment| segment.bytes).fold(0, u32::saturating_add);
        let (address, is_single) = match segments {
            [one] => (one.address, one.is_writable),
            _ => (0, false),
        };
        let slot = Slot { address, token, writable_bytes, descriptors, is_single };
        match &mut self.ring {
            Ring::Split(ring) => ring.post(segments, tables, slot),
            Ring::Packed(ring) => ring.post(segments, tables, slot),
        }
    }

    /// Makes all posted chains visible to the device, at one moment. Call it once per batch.
    #[inline]
    pub fn publish(&mut self) {
        match &mut self.ring {
            Ring::Split(ring) => ring.publish(),
            Ring::Packed(ring) => ring.publish(),
        }
    }

    /// Returns `true` if the device must be notified of the chains published since the last call (sections
    /// 2.7.7, 2.8.10). Exact with the event index; otherwise the device's flag decides.
    #[inline]
    pub fn needs_notify(&mut self) -> bool {
        match &mut self.ring {
            Ring::Split(ring) => ring.needs_notify(),
            Ring::Packed(ring) => ring.needs_notify(),
        }
    }

    /// Takes back the next chain that the device returned; `None` if there is none. Does not allocate.
    ///
    /// # Errors
    /// [`InvalidUsed`] if the device broke a rule; the error is counted. A broken queue returns the error once,
    /// and `None` afterwards.
    #[inline]
    pub fn take_used(&mut self) -> Result<Option<Used>, InvalidUsed> {
        if self.is_broken {
            return Ok(None);
        }
        let taken = match &mut self.ring {
            Ring::Split(ring) => ring.take_used(),
            Ring::Packed(ring) => ring.take_used(),
        };
        taken.inspect_err(|invalid| self.note(*invalid))
    }

    /// Takes back the next chain, as [`DriverQueue::take_used`] does, and posts it again with the same token,
    /// also if the device reports too many bytes. The device sees the chain after [`DriverQueue::publish`];
    /// until then its content stays. Costs less than `take_used` and [`DriverQueue::post`]. A chain that is not a
    /// single writable segment is taken back, and not posted. Does not allocate.
    ///
    /// # Errors
    /// As for `take_used`.
    #[inline(always)]
    pub fn recycle(&mut self) -> Result<Option<Used>, InvalidUsed> {
        if self.is_broken {
            return Ok(None);
        }
        let taken = match &mut self.ring {
            Ring::Split(ring) => ring.recycle(),
            Ring::Packed(ring) => ring.recycle(),
        };
        taken.inspect_err(|invalid| self.note(*invalid))
    }

    #[cold]
    const fn note(&mut self, invalid: InvalidUsed) {
        self.invalid += 1;
        self.is_broken = !matches!(invalid, InvalidUsed::TooLong { .. });
    }

    /// Asks the device not to send notifications. The device may still send some.
    pub fn disable_notifications(&mut self) {
        match &mut self.ring {
            Ring::Split(ring) => ring.disable_notifications(),
            Ring::Packed(ring) => ring.disable_notifications(),
        }
    }

    /// Asks the device to notify when it returns the next chain. Returns `true` if a chain was returned
    /// already. The device does not notify of such a chain, so the caller must take it before it waits.
    #[must_use]
    pub fn enable_notifications(&mut self) -> bool {
        let has_used = match &mut self.ring {
            Ring::Split(ring) => ring.enable_notifications(),
            Ring::Packed(ring) => ring.enable_notifications(),
        };
        has_used && !self.is_broken
    }

    /// Returns `true` if the device broke the ring so badly that no further chain can be taken from it.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns the number of times that the device broke a rule of the ring.
    #[must_use]
    pub const fn invalid(&self) -> u64 {
        self.invalid
    }
}

#[derive(Debug)]
enum Ring {
    Split(SplitDriver),
    Packed(PackedDriver),
}

/// Converts the chain in `slot`, which the device has returned, to the form for the caller. It is an error if
/// `bytes`, the number of written bytes, exceeds the chain's capacity.
#[inline]
fn written(slot: Slot, bytes: u32) -> Result<Used, InvalidUsed> {
    // The device writes nothing to this chain, so its length is meaningless (section 2.7.8).
    let bytes = if slot.writable_bytes == 0 { 0 } else { bytes };
    if bytes > slot.writable_bytes {
        return Err(InvalidUsed::TooLong { token: slot.token, claimed_bytes: bytes });
    }
    Ok(Used { token: slot.token, written_bytes: bytes })
}
