//! Reads received data again: in-order data, out-of-order data, and the last data that the application has
//! read.
//!
//! Separate from ordinary reading, which returns each byte once. A receiver of a group needs all the data of a
//! block to restore the block's lost segments (`multicast/restore.rs`), and the application may have read a
//! part of this data.

use alloc::boxed::Box;

use rxo_wire::SeqNumber;

use super::{Receive, Spill};
use crate::sequence::{before, distance, later};

/// The data that the application has read most recently. Allocates memory when needed.
#[derive(Debug)]
pub(super) struct ReadText {
    ring: Spill,
    size: u32,
    start: SeqNumber,
    end: SeqNumber,
}

impl ReadText {
    fn new(bytes: u32) -> Self {
        let nothing = SeqNumber::default();
        Self { ring: Spill::with_capacity(bytes), size: bytes, start: nothing, end: nothing }
    }

    /// Adds data at `seq`, which follows the data that was added before. Drops the oldest data if there is
    /// not enough space.
    fn add(&mut self, seq: SeqNumber, text: &[u8]) {
        let end = seq + text.len() as u32;
        let kept = before(end, self.size.min(text.len() as u32));
        if seq != self.end || kept != seq {
            self.ring.begin_at(kept);
            self.start = kept;
        } else if distance(self.start, end) > self.size {
            self.start = before(end, self.size);
            self.ring.advance_to(self.start);
        }
        self.ring.write(kept, &text[distance(seq, kept) as usize..]);
        self.end = end;
    }
}

impl<B: AsRef<[u8]>> Receive<B> {
    /// Keeps the last `bytes` bytes that the application reads from now on.
    pub(crate) fn keep_read_text(&mut self, bytes: u32) {
        self.read_text = Some(Box::new(ReadText::new(bytes)));
    }

    /// Adds the next `bytes` bytes of in-order data to the data that the application has read.
    #[inline]
    pub(super) fn remember(&mut self, bytes: usize) {
        if self.read_text.is_some() {
            self.remember_text(bytes);
        }
    }

    #[cold]
    fn remember_text(&mut self, bytes: usize) {
        let (mut at, mut left) = (self.read_at(), bytes);
        let Some(mut read) = self.read_text.take() else { return };
        for slice in self.slices() {
            let slice = &slice[..slice.len().min(left)];
            read.add(at, slice);
            (at, left) = (at + slice.len() as u32, left - slice.len());
            if left == 0 {
                break;
            }
        }
        self.read_text = Some(read);
    }

    /// Returns `true` if the data from `start` up to `end` has arrived and is kept.
    pub(crate) fn has(&self, start: SeqNumber, end: SeqNumber) -> bool {
        if !self.text_end().is_before(end) {
            return !start.is_before(self.kept_from());
        }
        let run = self.waiting.run_around(start);
        run.is_some_and(|run| !run.end.is_before(end))
    }

    /// Returns the sequence number of the first byte of received data that is kept.
    fn kept_from(&self) -> SeqNumber {
        let read_at = self.read_at();
        let read = self.read_text.as_ref().filter(|read| read.end == read_at);
        read.map_or(read_at, |read| read.start)
    }

    /// Copies the received data at `seq` to `to`, and returns `true`. Returns `false` if a part of that data is
    /// missing; the content of `to` is then undefined.
    pub(crate) fn copy(&self, seq: SeqNumber, to: &mut [u8]) -> bool {
        let end = seq + to.len() as u32;
        if !self.has(seq, end) {
            return false;
        }
        if self.text_end().is_before(end) {
            return self.waiting.copy(seq, to, &self.spill);
        }
        let read_at = self.read_at();
        let mut copied = 0;
        if seq.is_before(read_at)
            && let Some(read) = &self.read_text
        {
            let bytes = distance(seq, read_at).min(to.len() as u32);
            for slice in read.ring.slices(seq, bytes) {
                to[copied..copied + slice.len()].copy_from_slice(slice);
                copied += slice.len();
            }
        }
        let mut skipped = distance(read_at, later(seq, read_at)) as usize;
        for slice in self.slices() {
            let before = skipped.min(slice.len());
            skipped -= before;
            let part = &slice[before..];
            let part = &part[..part.len().min(to.len() - copied)];
            to[copied..copied + part.len()].copy_from_slice(part);
            copied += part.len();
        }
        copied == to.len()
    }
}
