//! Chains in flight, recorded in memory that outlives the device, so that the next device returns the chains
//! that this one did not return.
//!
//! The layouts are those of `docs/interop/vhost-user.rst` of QEMU, section "Inflight I/O tracking", because
//! other devices read and write these records. Integers have the byte order of this machine. Contract: the
//! memory may have any content and change at any time. A device reads it once, at its start, and checks each
//! index in it. A record that contradicts itself is refused. Later the device only writes the memory.

mod packed;
mod split;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) use packed::PackedInflight;
pub(super) use split::SplitInflight;

use crate::config::{Layout, MOST_DESCRIPTORS};
use crate::memory::{Mapping, Words};

/// The alignment of the region of a queue, in bytes.
const ALIGNMENT: u64 = 64;
/// The version of both layouts. A region of version 0 was not used before.
const VERSION: u16 = 1;
const VERSION_AT: usize = 8;
const SIZE_AT: usize = 10;

/// Returns the length of the region of one queue of `size` descriptors, in bytes. The next queue's region follows it.
#[must_use]
pub const fn inflight_bytes(layout: Layout, size: u16) -> u64 {
    let bytes = match layout {
        Layout::Split => split::HEADER_BYTES + split::STATE_BYTES * size as usize,
        Layout::Packed => packed::HEADER_BYTES + packed::STATE_BYTES * size as usize,
    };
    (bytes as u64).next_multiple_of(ALIGNMENT)
}

/// The memory of one queue's record of chains in flight, as atomic words.
#[derive(Debug)]
struct Record {
    words: Words,
}

impl Record {
    fn new(
        mapping: &Arc<Mapping>,
        offset: u64,
        (layout, size): (Layout, u16),
    ) -> Result<Self, InflightError> {
        let bytes = usize::try_from(inflight_bytes(layout, size.min(MOST_DESCRIPTORS)));
        let offset = usize::try_from(offset);
        let words = bytes.ok().zip(offset.ok());
        let words = words.and_then(|(bytes, offset)| Words::whole(mapping, offset, bytes, 8));
        Ok(Self { words: words.ok_or(InflightError::Region)? })
    }

    /// Returns `true` if a device has recorded chains here, and `false` if the region was not used before.
    fn is_used(&self, size: u16) -> Result<bool, InflightError> {
        match self.half(VERSION_AT) {
            0 => Ok(false),
            VERSION if self.half(SIZE_AT) == size => Ok(true),
            VERSION => Err(InflightError::Size { recorded: self.half(SIZE_AT), size }),
            version => Err(InflightError::Version(version)),
        }
    }

    fn half(&self, at: usize) -> u16 {
        self.words.half(at).load(Ordering::Acquire)
    }

    fn word32(&self, at: usize) -> u32 {
        self.words.word32(at).load(Ordering::Relaxed)
    }

    fn word64(&self, at: usize) -> u64 {
        self.words.word64(at).load(Ordering::Relaxed)
    }

    /// Stores a 16-bit word. Stores become visible in order, so a device that is killed between two stores
    /// leaves a record that the next device can read.
    fn set_half(&self, at: usize, value: u16) {
        self.words.half(at).store(value, Ordering::Release);
    }

    fn set_word32(&self, at: usize, value: u32) {
        self.words.word32(at).store(value, Ordering::Release);
    }

    fn set_word64(&self, at: usize, value: u64) {
        self.words.word64(at).store(value, Ordering::Release);
    }
}

/// The reason for which a record of chains in flight is refused: a fault of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InflightError {
    /// The region of the queue exceeds the memory of the record, or is not aligned to 8 bytes.
    Region,
    /// The record has another version than this code supports.
    Version(u16),
    /// The record was made for a queue of another size.
    Size {
        /// The size of the queue according to the record, in descriptors.
        recorded: u16,
        /// The size of the queue, in descriptors.
        size: u16,
    },
    /// The record contradicts itself or the ring: an index is out of range, a list has a loop, or there are more
    /// descriptors in flight than the queue has.
    Inconsistent,
}

impl fmt::Display for InflightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region => f.write_str("the record of chains in flight is too short or unaligned"),
            Self::Version(version) => {
                write!(f, "the record of chains in flight has version {version} instead of 1")
            }
            Self::Size { recorded, size } => {
                write!(f, "the record of chains in flight is of {recorded} descriptors, not {size}")
            }
            Self::Inconsistent => f.write_str("the record of chains in flight contradicts itself"),
        }
    }
}

impl std::error::Error for InflightError {}
