//! A stream of bytes, read in chunks that records share.
//!
//! This module is separate from the formats, so that the formats do not depend on the source of the bytes. If a
//! chunk ends within a record, only the part of that record in the chunk is copied. Contract: shared bytes
//! never change. The memory that records keep allocated is not much larger than their bytes: if only a small
//! share of a chunk would be shared, the bytes are copied instead.

use std::io::{self, Read};
use std::ops::Range;
use std::rc::Rc;

use super::SharedBytes;
use super::limits::CHUNK_BYTES;

/// The maximum number of chunks that are kept for reuse. More chunks may be in use; chunks beyond this number
/// are freed with their last record.
const MOST_KEPT: usize = 16;

/// The threshold for sparse sharing: a chunk counts as sparsely shared if fewer than one in this number of
/// its bytes are shared.
const LITTLE: u64 = 4;

/// The bytes of a capture that are not yet consumed.
pub(super) struct Stream {
    source: Box<dyn Read>,
    chunk: Rc<Vec<u8>>,
    /// The range of `chunk` that was read from the source and not yet consumed.
    unread: Range<usize>,
    /// The position in the stream of the first byte of `unread`, in bytes from the start.
    offset: u64,
    /// The position in the stream at which `is_sparse` was decided last, in bytes.
    decided_at: u64,
    shared_bytes: usize,
    /// `true` if records needed only a small part of the bytes before `decided_at`, and so probably need only a small
    /// part of the next chunk. The bytes of records are then copied instead of shared.
    is_sparse: bool,
    /// The chunks that records may still share.
    lent: Vec<Rc<Vec<u8>>>,
}

impl Stream {
    pub(super) fn new(source: Box<dyn Read>) -> Self {
        let chunk = Rc::new(vec![0; CHUNK_BYTES]);
        let (unread, lent) = (0..0, Vec::new());
        let (offset, decided_at, shared_bytes, is_sparse) = (0, 0, 0, false);
        Self { source, chunk, unread, offset, decided_at, shared_bytes, is_sparse, lent }
    }

    /// Returns the position of the stream's next byte, in bytes from the start.
    #[inline]
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the bytes of the stream that were read and not consumed.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.chunk.get(self.unread.clone()).unwrap_or_default()
    }

    /// Reads until `wanted` bytes are available. Returns `false` if the stream has fewer bytes.
    #[inline]
    pub(super) fn has(&mut self, wanted: usize) -> io::Result<bool> {
        if self.unread.len() >= wanted { Ok(true) } else { self.read_until(wanted) }
    }

    /// Returns the available bytes in `range`, which counts from the next byte and is cut at the end of the
    /// available bytes. The result shares the chunk. The result is a copy if only a small share of the chunk
    /// would be shared.
    #[inline]
    pub(super) fn share(&mut self, range: Range<usize>) -> SharedBytes {
        let start = self.unread.start;
        self.shared_bytes += range.len();
        let shared = SharedBytes::new(&self.chunk, start + range.start..start + range.end);
        if self.is_sparse { shared.detached() } else { shared }
    }

    /// Consumes the next `count` bytes, which must be available.
    #[inline]
    pub(super) fn consume(&mut self, count: usize) {
        let count = count.min(self.unread.len());
        self.unread.start += count;
        self.offset += count as u64;
    }

    /// Skips `count` bytes, including bytes that were not read yet. Returns `false` if the stream has fewer
    /// bytes.
    pub(super) fn skip(&mut self, mut count: u64) -> io::Result<bool> {
        while count > 0 {
            if !self.has(1)? {
                return Ok(false);
            }
            let step = self.unread.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            self.consume(step);
            count -= step as u64;
        }
        Ok(true)
    }

    #[cold]
    fn read_until(&mut self, wanted: usize) -> io::Result<bool> {
        self.make_room(wanted);
        // A long record gets a chunk of its own, because a short record after it would keep the whole large
        // chunk allocated.
        let end = if wanted > CHUNK_BYTES { wanted } else { CHUNK_BYTES };
        while self.unread.len() < wanted {
            // The chunk is not shared: `make_room` ensured it, and nothing was shared since.
            let room =
                Rc::get_mut(&mut self.chunk).and_then(|chunk| chunk.get_mut(self.unread.end..end));
            match self.source.read(room.unwrap_or_default()) {
                Ok(0) => return Ok(false),
                Ok(count) => self.unread.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Replaces `chunk`, if necessary, by a chunk that is not shared, begins with the unread bytes, and has
    /// space for `wanted` bytes. The chunk of a long record is not reused, because a short record in it would
    /// keep the whole large chunk allocated.
    fn make_room(&mut self, wanted: usize) {
        let unread = self.unread.clone();
        self.decide();
        let chunk_bytes = wanted.next_power_of_two().max(CHUNK_BYTES);
        match Rc::get_mut(&mut self.chunk) {
            Some(chunk) if chunk.len() == chunk_bytes => chunk.copy_within(unread.clone(), 0),
            _ => {
                let mut fresh = self.take_chunk(chunk_bytes);
                if let Some(chunk) = Rc::get_mut(&mut fresh)
                    && let Some(start) = chunk.get_mut(..unread.len())
                {
                    start.copy_from_slice(self.bytes());
                }
                let used = std::mem::replace(&mut self.chunk, fresh);
                self.keep(used);
            }
        }
        self.unread = 0..unread.len();
    }

    /// Decides, about once per chunk, whether bytes are copied instead of shared.
    fn decide(&mut self) {
        let passed = self.offset - self.decided_at;
        if passed >= CHUNK_BYTES as u64 / 2 {
            self.is_sparse = (self.shared_bytes as u64) < passed / LITTLE;
            (self.decided_at, self.shared_bytes) = (self.offset, 0);
        }
    }

    /// Returns an unshared chunk of `chunk_bytes` bytes: a reused or a new one.
    fn take_chunk(&mut self, chunk_bytes: usize) -> Rc<Vec<u8>> {
        let free = self.lent.iter().position(|chunk| Rc::strong_count(chunk) == 1);
        match free {
            Some(place) if chunk_bytes == CHUNK_BYTES => self.lent.swap_remove(place),
            _ => Rc::new(vec![0; chunk_bytes]),
        }
    }

    /// Stores a chunk for reuse once its records are dropped. If the chunk has an unusual size, or
    /// [`MOST_KEPT`] chunks are stored already, the chunk is freed with its last record instead.
    fn keep(&mut self, chunk: Rc<Vec<u8>>) {
        if chunk.len() == CHUNK_BYTES && self.lent.len() < MOST_KEPT {
            self.lent.push(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunk_of_a_long_record_does_not_stay() {
        let mut stream = Stream::new(Box::new(io::repeat(7)));
        assert!(stream.has(3 * CHUNK_BYTES).unwrap());
        assert_eq!(stream.chunk.len(), 4 * CHUNK_BYTES);
        stream.consume(usize::MAX);
        assert!(stream.has(1).unwrap());
        assert_eq!(stream.chunk.len(), CHUNK_BYTES);
        assert!(stream.lent.is_empty());
    }

    #[test]
    fn few_chunks_are_kept_and_none_that_is_shared_is_filled() {
        let mut stream = Stream::new(Box::new(io::repeat(7)));
        let held: Vec<_> = (0..2 * MOST_KEPT)
            .map(|_| {
                assert!(stream.has(CHUNK_BYTES).unwrap());
                let shared = stream.share(0..CHUNK_BYTES);
                stream.consume(CHUNK_BYTES);
                shared
            })
            .collect();
        assert_eq!(stream.lent.len(), MOST_KEPT);
        drop(held);
        assert!(stream.has(1).unwrap());
        assert_eq!(stream.lent.len(), MOST_KEPT);
    }
}
