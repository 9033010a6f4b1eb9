//! Fills the driver's buffers with one packet, piece by piece.

use std::fmt;

use super::{Chain, DeviceQueue, Fit};
use crate::memory::Memory;

/// Writes one packet into reserved buffers. [`Writer::finish`] consumes them; dropping it does not.
#[derive(Debug)]
#[must_use = "buffers are consumed by `finish`"]
pub struct Writer<'q> {
    queue: &'q mut DeviceQueue,
    memory: &'q Memory,
    fit: Fit,
    /// The place to write to, and how much of it is written.
    place: usize,
    filled_bytes: u32,
    written_bytes: u32,
    has_overrun: bool,
}

impl<'q> Writer<'q> {
    #[inline]
    pub(super) const fn new(queue: &'q mut DeviceQueue, memory: &'q Memory, fit: Fit) -> Self {
        Self { queue, memory, fit, place: 0, filled_bytes: 0, written_bytes: 0, has_overrun: false }
    }

    /// Copies `piece` behind what was written. What exceeds the buffers makes
    /// [`Writer::finish`] fail.
    #[inline]
    pub fn write(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let Some(&place) = self.queue.walk.places.get(self.place) else {
                self.has_overrun = true;
                return;
            };
            let room = (place.bytes - self.filled_bytes) as usize;
            let (now, later) = piece.split_at(piece.len().min(room));
            self.has_overrun |= !self.memory.write_place(place, self.filled_bytes, now);
            let bytes = now.len() as u32;
            self.filled_bytes += bytes;
            self.written_bytes += bytes;
            if self.filled_bytes == place.bytes {
                self.place += 1;
                self.filled_bytes = 0;
            }
            piece = later;
        }
    }

    /// Writes the number of buffers, if they are merged, and returns the buffers that were written to
    /// the driver (visible after [`DeviceQueue::publish`]). The others are left. Returns how many
    /// were used.
    ///
    /// # Errors
    /// If more was written than was reserved. Nothing is consumed then.
    #[inline]
    pub fn finish(self) -> Result<u16, Overrun> {
        if self.has_overrun {
            return Err(Overrun);
        }
        let buffers = self.count_buffers();
        if let Fit::Merged { count_at } = self.fit {
            self.write_at(count_at, &buffers.to_le_bytes());
        }
        let mut left = self.written_bytes;
        for chain in &self.queue.chains[..usize::from(buffers)] {
            let written = left.min(chain.writable_bytes);
            left -= written;
            self.queue.ring.put_used(chain.head, written);
            self.queue.ring.consume(chain.after);
        }
        Ok(buffers)
    }

    /// How many chains hold what was written.
    #[inline]
    fn count_buffers(&self) -> u16 {
        let (mut buffers, mut left) = (0, self.written_bytes);
        for &Chain { writable_bytes, .. } in &self.queue.chains {
            if left == 0 {
                break;
            }
            buffers += 1;
            left = left.saturating_sub(writable_bytes);
        }
        buffers
    }

    /// Overwrites two bytes at `at`, which may be in two places. Does nothing for bytes that were not
    /// written.
    #[inline]
    fn write_at(&self, at: u32, bytes: &[u8; 2]) {
        let mut start = 0;
        let mut todo = &bytes[..];
        let mut at = at;
        if self.written_bytes < 2 || at > self.written_bytes - 2 {
            return;
        }
        for &place in &self.queue.walk.places {
            if at - start < place.bytes {
                let room = (place.bytes - (at - start)) as usize;
                let (now, later) = todo.split_at(todo.len().min(room));
                // Written before, so it is inside.
                let _ = self.memory.write_place(place, at - start, now);
                todo = later;
                if todo.is_empty() {
                    return;
                }
                at += 1;
            }
            start += place.bytes;
        }
    }
}

/// More was written than was reserved: a mistake of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a packet was longer than the buffers reserved for it")
    }
}

impl std::error::Error for Overrun {}
