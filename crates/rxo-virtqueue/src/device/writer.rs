//! Fills the driver's buffers with one packet, piece by piece.

use std::fmt;
use std::ops::Range;

use super::{DeviceQueue, Fit};
use crate::memory::{Memory, Room};

/// Writes one packet into reserved buffers of the driver. [`Writer::finish`] returns the filled buffers to
/// the driver; dropping the writer leaves all buffers posted.
#[derive(Debug)]
#[must_use = "buffers are consumed by `finish`"]
pub struct Writer<'q> {
    queue: &'q mut DeviceQueue,
    memory: &'q Memory,
    fit: Fit,
    /// The unwritten part of the current buffer.
    room: Room<'q>,
    /// The index of the location that follows the current buffer.
    next_place: usize,
    written_bytes: u32,
    has_overrun: bool,
}

impl<'q> Writer<'q> {
    #[inline]
    pub(super) const fn new(queue: &'q mut DeviceQueue, memory: &'q Memory, fit: Fit) -> Self {
        let (room, next_place) = (Room::NONE, 0);
        Self { queue, memory, fit, room, next_place, written_bytes: 0, has_overrun: false }
    }

    /// Appends `piece` to the packet. If it exceeds the reserved buffers, [`Writer::finish`] fails.
    #[inline]
    pub fn write(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while !rest.is_empty() {
            if self.room.is_full() && !self.take_place() {
                self.has_overrun = true;
                return;
            }
            rest = self.room.fill(rest);
        }
        self.written_bytes = self.written_bytes.saturating_add(piece.len() as u32);
    }

    /// Returns the locations to which the bytes in this range of the packet will be written: for each, its address
    /// modulo the page size, and its length in bytes.
    pub fn places(&self, bytes: Range<u32>) -> impl Iterator<Item = (usize, u32)> {
        let mut start = 0_u32;
        self.queue.walk.places.iter().filter_map(move |place| {
            let end = start.saturating_add(place.bytes);
            let (from, to) = (bytes.start.max(start), bytes.end.min(end));
            // Regions begin on page boundaries in the file and in the guest, so the offset gives the address
            // within a page.
            let address = (place.offset + (from - start) as usize) % PAGE_BYTES;
            start = end;
            (from < to).then(|| (address, to - from))
        })
    }

    /// Makes the buffer at the next location the current one. Returns `false` if there is no further
    /// location.
    #[inline]
    fn take_place(&mut self) -> bool {
        let place = self.queue.walk.places.get(self.next_place);
        let Some(room) = place.and_then(|place| self.memory.room(*place)) else { return false };
        self.room = room;
        self.next_place += 1;
        true
    }

    /// Completes the packet: writes the number of buffers into its header if buffers are merged, and returns the filled
    /// buffers to the driver (visible after [`DeviceQueue::publish`]). Unfilled buffers stay posted. Returns the number
    /// of buffers used.
    ///
    /// # Errors
    /// [`Overrun`] if more was written than was reserved. In that case nothing is consumed.
    #[inline]
    pub fn finish(self) -> Result<u16, Overrun> {
        if self.has_overrun {
            self.queue.mark_buffers(self.memory, u32::MAX);
            return Err(Overrun);
        }
        let DeviceQueue { ring, chains, .. } = &mut *self.queue;
        let buffers = ring.put_filled(chains, self.written_bytes);
        if let Fit::Merged { count_at } = self.fit {
            self.write_at(count_at, &buffers.to_le_bytes());
        }
        if self.queue.logged.is_some() {
            self.queue.mark_buffers(self.memory, self.written_bytes);
        }
        Ok(buffers)
    }

    /// Overwrites two bytes at offset `at` of the packet, which may span two buffers. Does nothing unless both
    /// bytes were written before.
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
                // These bytes were written before, so the location is inside the memory.
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

const PAGE_BYTES: usize = 4_096;

/// Error: more bytes were written than were reserved, which is a mistake of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a packet was longer than the buffers reserved for it")
    }
}

impl std::error::Error for Overrun {}
