//! The spill: data that is copied because it arrived in too many pieces.
//!
//! The window counts bytes, but the data of each segment occupies a whole buffer: a peer that sends few bytes
//! in each segment would use up all buffers long before the window. Data beyond the limit of buffers is copied
//! to this ring, which is as large as the window. Thus all data inside an offered window can be kept. Separate
//! because the ring addresses bytes by sequence number only; `mod.rs` and `reassembly.rs` track which bytes are
//! in order.

use alloc::vec::Vec;
use core::fmt;

use rxo_wire::SeqNumber;

use crate::reserve::reserve;
use crate::sequence::distance;

/// A ring of bytes, addressed by sequence number. Allocates memory when needed.
pub(crate) struct Spill {
    /// The part of the ring that has been written so far.
    bytes: Vec<u8>,
    size: usize,
    /// The sequence number of the byte at `head`. Bytes before this number are no longer read.
    origin: SeqNumber,
    head: usize,
}

impl Spill {
    /// Creates a ring for `bytes` bytes.
    pub(crate) fn with_capacity(bytes: u32) -> Self {
        let size = bytes as usize;
        Self { bytes: Vec::new(), size, origin: SeqNumber::default(), head: 0 }
    }

    /// Frees all memory. Call this method when none of the bytes are needed.
    pub(crate) fn free(&mut self) {
        self.bytes = Vec::new();
    }

    /// Drops all bytes. Later writes begin at or after `origin`.
    pub(crate) fn begin_at(&mut self, origin: SeqNumber) {
        (self.origin, self.head) = (origin, 0);
    }

    /// Frees the space of all bytes before `origin`, which have been read.
    pub(crate) fn advance_to(&mut self, origin: SeqNumber) {
        let gone = distance(self.origin, origin) as usize;
        (self.origin, self.head) = (origin, self.place(gone));
    }

    /// Changes the size of the ring to `bytes` bytes. Keeps as many bytes from `origin` on as fit.
    pub(crate) fn resize(&mut self, origin: SeqNumber, bytes: u32) {
        self.advance_to(origin);
        let mut resized = Self::with_capacity(bytes);
        resized.begin_at(origin);
        let (written, head) = (self.bytes.len(), self.head);
        resized.write(origin, self.bytes.get(head..).unwrap_or_default());
        let wrapped = self.bytes.get(..head.min(written)).unwrap_or_default();
        resized.write(origin + (self.size - head) as u32, wrapped);
        *self = resized;
    }

    /// Copies `data` into the ring at the sequence number `seq`. Leaves out the part before the origin and the
    /// part beyond the size of the ring.
    pub(crate) fn write(&mut self, seq: SeqNumber, data: &[u8]) {
        let Ok(offset) = usize::try_from(seq - self.origin) else { return };
        let data = &data[..data.len().min(self.size.saturating_sub(offset))];
        if data.is_empty() {
            return;
        }
        let at = self.place(offset);
        let (first, second) = data.split_at(data.len().min(self.size - at));
        self.copy(at, first);
        self.copy(0, second);
    }

    fn copy(&mut self, at: usize, data: &[u8]) {
        let end = at + data.len();
        if self.bytes.len() < end {
            reserve(&mut self.bytes, end, self.size);
            if self.bytes.len() <= at {
                self.bytes.resize(at, 0);
                self.bytes.extend_from_slice(data);
                return;
            }
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(data);
    }

    /// Returns `bytes` bytes, starting at `seq`, in two slices if they wrap around the end of the ring.
    pub(crate) fn slices(&self, seq: SeqNumber, bytes: u32) -> [&[u8]; 2] {
        if bytes == 0 {
            return [&[], &[]];
        }
        let (at, bytes) = (self.place(distance(self.origin, seq) as usize), bytes as usize);
        let first = bytes.min(self.size - at);
        let part = |at: usize, bytes: usize| self.bytes.get(at..at + bytes).unwrap_or_default();
        [part(at, first), part(0, bytes - first)]
    }

    fn place(&self, offset: usize) -> usize {
        (self.head + offset).checked_rem(self.size).unwrap_or(0)
    }
}

impl fmt::Debug for Spill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spill")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_across_the_rings_end_and_the_wrap() {
        let mut spill = Spill::with_capacity(10);
        let start = SeqNumber(u32::MAX - 3);
        spill.begin_at(start);
        spill.write(start + 2, b"cdefgh");
        spill.write(start, b"ab");
        assert_eq!(spill.slices(start, 8), [&b"abcdefgh"[..], &b""[..]]);
        spill.advance_to(start + 7);
        spill.write(start + 8, b"ijklmnopq is too much");
        assert_eq!(spill.slices(start + 7, 10).concat(), b"hijklmnopq");
        assert_eq!(spill.slices(start + 9, 2), [&b"j"[..], &b"k"[..]]);
        spill.write(start + 3, b"too old");
        assert_eq!(spill.slices(start + 7, 10).concat(), b"hijklmnopq");
    }

    #[test]
    fn a_resized_ring_keeps_what_it_has_room_for() {
        for bytes in [6, 10, 40] {
            let mut spill = Spill::with_capacity(10);
            let start = SeqNumber(u32::MAX - 3);
            spill.begin_at(start);
            spill.advance_to(start + 7);
            spill.write(start + 8, b"ijklmn");
            spill.resize(start + 8, bytes);
            assert_eq!(spill.slices(start + 8, 6).concat(), b"ijklmn");
            spill.write(start + 14, b"o");
            let room = usize::from(bytes > 6);
            assert_eq!(spill.slices(start + 13, 1 + room as u32).concat(), b"no"[..=room]);
        }
        let mut empty = Spill::with_capacity(10);
        empty.resize(SeqNumber(5), 20);
        empty.write(SeqNumber(5), &[7; 20]);
        assert_eq!(empty.slices(SeqNumber(5), 20).concat(), [7; 20]);
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut spill = Spill::with_capacity(0);
        spill.write(SeqNumber(0), b"x");
        assert_eq!(spill.slices(SeqNumber(0), 0), [&b""[..]; 2]);
    }
}
