//! Data that the application has written and this crate has copied.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::reserve::reserve;

/// A queue of bytes in chunks. The queue grows without moving bytes. Emptied chunks are reused, the last one
/// first, because it is probably still in the cache. Allocates memory when needed.
pub(super) struct Chunks {
    /// The chunks with data, in order. All but the last are full.
    used: VecDeque<Vec<u8>>,
    /// The empty chunks, for reuse.
    free: Vec<Vec<u8>>,
    size: usize,
    /// The offset of the data in the first chunk.
    head: usize,
    length: usize,
}

impl Chunks {
    /// Creates a queue of at most `bytes` bytes, in at most [`most_chunks`] chunks.
    pub(super) const fn with_capacity(bytes: u32) -> Self {
        let size = bytes as usize;
        Self { used: VecDeque::new(), free: Vec::new(), size, head: 0, length: 0 }
    }

    /// Changes the maximum length of the queue to `bytes` bytes, or to the length of its data if that is
    /// more.
    pub(super) fn resize(&mut self, bytes: u32) {
        self.size = self.length.max(bytes as usize);
        self.free.truncate(most_chunks(self.size).saturating_sub(self.used.len()));
    }

    /// Frees unused memory, which is allocated again when needed.
    pub(super) fn free_unused(&mut self) {
        self.free = Vec::new();
        if self.length == 0 {
            self.used = VecDeque::new();
        }
    }

    /// Returns the length of the data, in bytes.
    pub(super) const fn len(&self) -> u32 {
        self.length as u32
    }

    /// Returns the free space, in bytes.
    pub(super) const fn room(&self) -> u32 {
        (self.size - self.length) as u32
    }

    /// Appends as much of `data` as fits. Returns the number of bytes appended.
    pub(super) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.room() as usize);
        let mut left = &data[..taken];
        while !left.is_empty() {
            let Some(chunk) = self.used.back_mut().filter(|chunk| chunk.len() < CHUNK_BYTES) else {
                let chunk = self.free.pop().unwrap_or_else(|| self.new_chunk());
                self.used.push_back(chunk);
                continue;
            };
            let (now, later) = left.split_at(left.len().min(CHUNK_BYTES - chunk.len()));
            reserve(chunk, chunk.len() + now.len(), CHUNK_BYTES);
            chunk.extend_from_slice(now);
            left = later;
        }
        self.length += taken;
        taken
    }

    /// Returns a new chunk for the queue. The first chunk grows with the data. Further chunks are allocated in
    /// full size, because the queue is then large.
    fn new_chunk(&self) -> Vec<u8> {
        if self.used.is_empty() { Vec::new() } else { Vec::with_capacity(CHUNK_BYTES) }
    }

    /// Removes the first `bytes` bytes, or all if there are fewer.
    #[inline]
    pub(super) fn advance(&mut self, bytes: u32) {
        let gone = self.length.min(bytes as usize);
        self.length -= gone;
        self.head += gone;
        if self.used.len() > 1 && (self.length == 0 || self.head >= CHUNK_BYTES) {
            self.free_used_up();
        }
        if self.length == 0 {
            // An empty queue begins anew, so that little data uses little memory.
            self.head = 0;
            if let Some(chunk) = self.used.front_mut() {
                chunk.clear();
            }
        }
    }

    /// Moves the chunks without data to the free chunks, except the last chunk of the queue.
    #[inline(never)]
    fn free_used_up(&mut self) {
        while self.used.len() > 1 && (self.length == 0 || self.head >= CHUNK_BYTES) {
            self.free.extend(self.used.pop_front().map(emptied));
            self.head = self.head.saturating_sub(CHUNK_BYTES);
        }
    }

    /// Returns the bytes from the index `from` up to `to`, which must be in the queue. If the bytes lie in
    /// several chunks, returns only the part in the first chunk.
    #[inline]
    pub(super) fn slice(&self, from: u32, to: u32) -> &[u8] {
        let at = self.head + from as usize;
        let Some(chunk) = self.used.get(at / CHUNK_BYTES) else { return &[] };
        let ahead = chunk.get(at % CHUNK_BYTES..).unwrap_or_default();
        ahead.get(..(to - from) as usize).unwrap_or(ahead)
    }
}

fn emptied(mut chunk: Vec<u8>) -> Vec<u8> {
    chunk.clear();
    chunk
}

/// Returns the maximum number of chunks that hold `bytes` bytes: the data may begin and end within a chunk.
pub(super) const fn most_chunks(bytes: usize) -> usize {
    bytes.div_ceil(CHUNK_BYTES) + 1
}

/// The size of a chunk in bytes: small compared with a buffer of 64 KiB. A gathered write needs one entry for
/// each chunk.
pub(super) const CHUNK_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_queue_takes_nothing_more() {
        let mut chunks = Chunks::with_capacity(4);
        assert_eq!(chunks.write(b"abcdef"), 4);
        assert_eq!(chunks.write(b"x"), 0);
        chunks.advance(3);
        assert_eq!(chunks.write(b"efg"), 3);
        assert_eq!([chunks.slice(0, 4), chunks.slice(1, 3)], [&b"defg"[..], b"ef"]);
    }

    /// Small writes use little memory, and reuse it.
    #[test]
    fn unused_memory_is_not_touched() {
        let mut chunks = Chunks::with_capacity(1 << 20);
        for _ in 0..1_000 {
            chunks.write(b"a request");
            chunks.advance(9);
        }
        assert_eq!(chunks.memory(), 256);
        chunks.free_unused();
        assert_eq!(chunks.memory(), 0);
    }

    /// However large the queue may be, data that is written and removed stays in the same few chunks.
    #[test]
    fn the_chunk_that_was_used_last_serves_again() {
        let mut chunks = Chunks::with_capacity(4 << 20);
        for _ in 0..1_000 {
            chunks.write(&[7; 40_000]);
            chunks.advance(40_000);
        }
        assert_eq!(chunks.memory(), 3 * CHUNK_BYTES);
    }

    #[test]
    fn a_smaller_queue_gives_memory_back() {
        let mut chunks = Chunks::with_capacity(1 << 20);
        chunks.write(&[7; 1 << 20]);
        chunks.advance((1 << 20) - 10);
        assert_eq!(chunks.memory(), 1 << 20);
        chunks.resize(4 * CHUNK_BYTES as u32);
        assert_eq!(chunks.memory(), 5 * CHUNK_BYTES);
        assert_eq!(chunks.slice(0, 10), [7; 10]);
    }

    impl Chunks {
        fn memory(&self) -> usize {
            self.used.iter().chain(&self.free).map(Vec::capacity).sum()
        }
    }

    proptest! {
        /// The naive oracle is a queue of bytes.
        #[test]
        fn it_is_a_queue(
            operations in prop::collection::vec((0_u32..40_000, 0_u32..40_000, 0_u32..240_000), 0..60),
        ) {
            let mut chunks = Chunks::with_capacity(17_000);
            let (mut queue, mut size, mut most) = (VecDeque::<u8>::new(), 17_000, 0);
            for (number, (write, advance, resize)) in operations.into_iter().enumerate() {
                if resize < 80_000 {
                    chunks.resize(resize);
                    size = queue.len().max(resize as usize);
                    most = chunks.memory();
                }
                let data: Vec<u8> = (0..write).map(|at| (number as u8) ^ at as u8).collect();
                let taken = chunks.write(&data);
                prop_assert_eq!(taken, data.len().min(size - queue.len()));
                queue.extend(&data[..taken]);
                chunks.advance(advance);
                queue.drain(..queue.len().min(advance as usize));
                let (mut seen, end) = (Vec::new(), chunks.len());
                while seen.len() < end as usize {
                    seen.extend_from_slice(chunks.slice(seen.len() as u32, end));
                }
                prop_assert!(queue.iter().eq(&seen));
                prop_assert!(chunks.memory() <= most.max(most_chunks(size) * CHUNK_BYTES));
            }
        }
    }
}
