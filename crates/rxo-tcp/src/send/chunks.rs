//! Text that the application has written and the stack has copied.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::reserve::reserve;

/// A queue of bytes in chunks. It grows without moving them. A chunk that is used up serves again, the last one
/// first, because it is probably still in the cache. Allocates memory when it is used.
pub(super) struct Chunks {
    /// Those with text, in order. All but the last are full.
    used: VecDeque<Vec<u8>>,
    /// Empty ones.
    free: Vec<Vec<u8>>,
    size: usize,
    /// Where the text begins in the first chunk.
    head: usize,
    length: usize,
}

impl Chunks {
    /// A queue of at most `bytes`, in at most [`most_chunks`] of that.
    pub(super) const fn with_capacity(bytes: u32) -> Self {
        let size = bytes as usize;
        Self { used: VecDeque::new(), free: Vec::new(), size, head: 0, length: 0 }
    }

    /// Changes the size to `bytes`, or to the length of the data if that is more.
    pub(super) fn resize(&mut self, bytes: u32) {
        self.size = self.length.max(bytes as usize);
        self.free.truncate(most_chunks(self.size).saturating_sub(self.used.len()));
    }

    /// Frees the memory that holds no text. It is allocated again when it is used.
    pub(super) fn free_unused(&mut self) {
        self.free = Vec::new();
        if self.length == 0 {
            self.used = VecDeque::new();
        }
    }

    /// The length of the data, in bytes.
    pub(super) const fn len(&self) -> u32 {
        self.length as u32
    }

    /// The free room, in bytes.
    pub(super) const fn room(&self) -> u32 {
        (self.size - self.length) as u32
    }

    /// Appends as much of `data` as fits. Returns how many bytes.
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

    /// The first of a queue grows with what is written; a queue that needs another one has much.
    fn new_chunk(&self) -> Vec<u8> {
        if self.used.is_empty() { Vec::new() } else { Vec::with_capacity(CHUNK_BYTES) }
    }

    /// Removes the first `bytes`, or all if there are fewer.
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

    /// Frees the chunks before the text, but for the last.
    #[inline(never)]
    fn free_used_up(&mut self) {
        while self.used.len() > 1 && (self.length == 0 || self.head >= CHUNK_BYTES) {
            self.free.extend(self.used.pop_front().map(emptied));
            self.head = self.head.saturating_sub(CHUNK_BYTES);
        }
    }

    /// The bytes from the index `from` up to `to`, which are in the queue, as far as they are in one piece: the
    /// end of a chunk may divide them.
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

/// The most chunks that hold `bytes`: they may begin and end within one.
pub(super) const fn most_chunks(bytes: usize) -> usize {
    bytes.div_ceil(CHUNK_BYTES) + 1
}

/// A piece of 16 KiB is one place in a gathered write, and small beside a buffer of 64 KiB.
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

    /// Little data at a time takes little memory, and always the same.
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

    /// However large it is, what is written and taken again stays in the same few chunks.
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
