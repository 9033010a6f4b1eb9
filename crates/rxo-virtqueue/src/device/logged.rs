//! Records in the log of dirty pages which parts of the guest's memory a device has written.

use crate::memory::{DirtyLog, Memory, Place};

/// A log of dirty pages, with the guest addresses under which writes to the queue's areas are logged.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) log: DirtyLog,
    pub(super) descriptors: u64,
    pub(super) device: u64,
}

/// A part of an area of the queue that the device has written: its offset in the area and its length, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written {
    Descriptors(usize, usize),
    Device(usize, usize),
}

impl Written {
    pub(super) const NOTHING: Self = Self::Device(0, 0);

    /// Returns the parts of an area that contain `count` entries of `entry` bytes, from entry `first` on, in
    /// a ring of `size` entries that begins at `start` in its area. The second part is not empty if the
    /// entries wrap around to the ring's start.
    pub(super) fn entries(
        (start, entry, size): (usize, usize, u16),
        first: u16,
        count: u32,
        area: fn(usize, usize) -> Self,
    ) -> [Self; 2] {
        let (size, first) = (usize::from(size), usize::from(first));
        let count = (count as usize).min(size);
        let now = count.min(size - first);
        [area(start + entry * first, entry * now), area(start, entry * (count - now))]
    }
}

impl Logged {
    pub(super) fn mark(&self, written: Written) {
        let (area, offset, bytes) = match written {
            Written::Descriptors(offset, bytes) => (self.descriptors, offset, bytes),
            Written::Device(offset, bytes) => (self.device, offset, bytes),
        };
        self.log.mark(area.saturating_add(offset as u64), bytes as u64);
    }

    /// Marks the first `bytes` bytes of the buffers at `places`.
    pub(super) fn mark_buffers(&self, memory: &Memory, places: &[Place], bytes: u32) {
        let mut left = bytes;
        for place in places {
            if left == 0 {
                return;
            }
            let written = left.min(place.bytes);
            left -= written;
            if let Some(address) = memory.guest_start(*place) {
                self.log.mark(address, u64::from(written));
            }
        }
    }
}
