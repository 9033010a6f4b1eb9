//! Dispatches the calls of a queue to the device side of a split or a packed ring.

use std::sync::Arc;

use super::inflight::InflightError;
use super::logged::Written;
use super::packed::PackedDevice;
use super::split::SplitDevice;
use super::walk::Walk;
use super::{Chain, Head, RingEntry};
use crate::memory::{Mapping, Memory};
use crate::ring::Position;

/// The device side of a split or a packed ring. Calls for each frame are dispatched by a predictable branch.
#[derive(Debug)]
pub(super) enum Ring {
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
    pub(super) const fn cursor(&self) -> Position {
        either!(self, ring => ring.cursor())
    }

    #[inline(always)]
    pub(super) fn next(
        &mut self,
        memory: &Memory,
        cursor: &mut Position,
        walk: &mut Walk,
    ) -> RingEntry {
        either!(self, ring => ring.next(memory, cursor, walk))
    }

    /// Returns the chain at `cursor`, and moves the cursor past it, if it is a single writable buffer inside
    /// one region. Otherwise returns `None` and changes nothing; [`Ring::next`] then handles the entry.
    #[inline(always)]
    pub(super) fn next_single(
        &self,
        memory: &Memory,
        cursor: &mut Position,
        walk: &mut Walk,
    ) -> Option<Chain> {
        either!(self, ring => ring.next_single(memory, cursor, walk))
    }

    #[inline]
    pub(super) const fn consume(&mut self, to: Position) {
        either!(self, ring => ring.consume(to));
    }

    #[inline]
    pub(super) fn put_used(&mut self, head: Head, written: u32) {
        either!(self, ring => ring.put_used(head, written));
    }

    /// Returns to the driver as many of `chains` as `bytes` bytes fill. `chains` are the next chains of the
    /// ring. Returns the number of chains.
    #[inline]
    pub(super) fn put_filled(&mut self, chains: &[Chain], bytes: u32) -> u16 {
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
    pub(super) fn publish(&mut self) {
        either!(self, ring => ring.publish());
    }

    pub(super) fn track(
        &mut self,
        mapping: &Arc<Mapping>,
        offset: u64,
    ) -> Result<(), InflightError> {
        either!(self, ring => ring.track(mapping, offset))
    }

    /// Returns the parts of memory that the device will have written after the next publication.
    pub(super) fn unpublished(&self) -> [Written; 3] {
        either!(self, ring => ring.unpublished())
    }

    /// Returns the part of memory that contains the device's notification setting.
    pub(super) fn setting(&self) -> Written {
        either!(self, ring => ring.setting())
    }

    #[inline]
    pub(super) fn needs_notify(&mut self) -> bool {
        either!(self, ring => ring.needs_notify())
    }

    pub(super) fn disable_notifications(&mut self) {
        either!(self, ring => ring.disable_notifications());
    }

    pub(super) fn enable_notifications(&mut self, of: Position) -> bool {
        either!(self, ring => ring.enable_notifications(of))
    }

    pub(super) fn has_unpublished(&self) -> bool {
        either!(self, ring => ring.has_unpublished())
    }

    pub(super) fn backlog(&self) -> Option<u16> {
        either!(self, ring => ring.backlog())
    }

    pub(super) fn base(&self) -> u32 {
        either!(self, ring => ring.base())
    }
}
