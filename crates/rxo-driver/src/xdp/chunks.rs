//! Chunks: the memory of frames, divided into chunks, and the current owner of each chunk.
//!
//! This module is separate because the safety of shared frames depends only on ownership. The owner of a chunk
//! for receiving is the kernel (between the fill ring and the ring of received frames), the source, a
//! [`ChunkBuf`] to which the chunk is lent, or the list of returned chunks. A buffer may be dropped on any
//! thread, but only the source may write to the fill ring. So the chunk of a dropped buffer is added to the list
//! of returned chunks. The source takes all chunks from this list at once.
//!
//! Contract: each chunk has one owner at a time. The memory lives until the last buffer is dropped, even if
//! the socket is closed before.
#![allow(unsafe_code, reason = "chunks are shared with the kernel")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::memory::Mapping;

/// The chunks of one socket: first those for received frames, then those for frames to send.
#[derive(Debug)]
pub(super) struct Chunks {
    memory: Mapping,
    chunk_bytes: u32,
    /// The number of chunks for received frames.
    receive: u32,
    /// The number of the first chunk in the list of returned chunks, or [`NONE`].
    first: AtomicU32,
    /// For each chunk, the number of the next chunk in the list of returned chunks, or [`NONE`].
    next: Box<[AtomicU32]>,
}

/// The value that means "no chunk", at the end of the list.
const NONE: u32 = u32::MAX;

impl Chunks {
    /// Maps memory for `receive` chunks for received frames, and `send` chunks for frames to send.
    pub(super) fn new(chunk_bytes: u32, receive: u32, send: u32) -> io::Result<Arc<Self>> {
        let memory = Mapping::fresh((receive + send) as usize * chunk_bytes as usize)?;
        let next = (0..receive).map(|_| AtomicU32::new(NONE)).collect();
        Ok(Arc::new(Self { memory, chunk_bytes, receive, first: AtomicU32::new(NONE), next }))
    }

    pub(super) const fn memory(&self) -> &Mapping {
        &self.memory
    }

    pub(super) const fn chunk_bytes(&self) -> u32 {
        self.chunk_bytes
    }

    /// Returns the address of chunk `n` in the memory, as an offset in bytes.
    #[inline]
    pub(super) fn address(&self, n: u32) -> u64 {
        u64::from(n) * u64::from(self.chunk_bytes)
    }

    /// Returns the number of the chunk that contains the `len` bytes at `address`; `None` if no chunk for
    /// received frames contains all of them.
    #[inline]
    fn received(&self, address: u64, len: u32) -> Option<u32> {
        let chunk_bytes = u64::from(self.chunk_bytes);
        let (n, offset) = (address / chunk_bytes, address % chunk_bytes);
        let n = u32::try_from(n).ok().filter(|n| *n < self.receive)?;
        (offset + u64::from(len) <= chunk_bytes).then_some(n)
    }

    /// Removes and yields all chunks in the list of returned chunks, the chunk that was returned last first.
    #[inline]
    fn take_returned(&self) -> impl Iterator<Item = u32> {
        let mut at = self.first.swap(NONE, Ordering::Acquire);
        std::iter::from_fn(move || {
            let n = at;
            at = self.next.get(n as usize)?.load(Ordering::Relaxed);
            Some(n)
        })
    }

    /// Adds chunk `n` to the list of returned chunks.
    #[inline]
    fn put_returned(&self, n: u32) {
        let next = &self.next[n as usize];
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            next.store(first, Ordering::Relaxed);
            // Only whole lists are taken, so a chunk that was taken and returned in the meantime does no
            // harm.
            match self.first.compare_exchange_weak(first, n, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
}

/// The chunks for received frames, as the source uses them.
#[derive(Debug)]
pub(super) struct Incoming {
    chunks: Arc<Chunks>,
    /// `true` for each chunk that the kernel owns.
    is_with_kernel: Box<[bool]>,
    with_kernel: u32,
}

impl Incoming {
    /// Creates the source's state for `chunks`, and adds all chunks for received frames to the list of returned
    /// chunks. Must be called only once for the same `chunks`.
    pub(super) fn new(chunks: Arc<Chunks>) -> Self {
        (0..chunks.receive).for_each(|n| chunks.put_returned(n));
        let is_with_kernel = vec![false; chunks.receive as usize].into();
        Self { chunks, is_with_kernel, with_kernel: 0 }
    }

    /// Returns `true` if the kernel owns so few chunks that frames should be copied out of their chunks.
    #[inline]
    pub(super) fn are_few(&self) -> bool {
        self.with_kernel < self.chunks.receive / 4
    }

    /// Returns the number of chunks for received frames.
    pub(super) fn chunks(&self) -> u32 {
        self.chunks.receive
    }

    /// Returns the number of chunks that the kernel owns.
    pub(super) fn with_kernel(&self) -> u32 {
        self.with_kernel
    }

    /// Prefetches the headers of the frame at `address`.
    #[inline]
    pub(super) fn prefetch(&self, address: u64) {
        self.chunks.memory.prefetch(address as usize);
    }

    /// Makes the kernel the owner of chunk `n`, and returns the address to pass to the kernel. The chunk must
    /// not be lent.
    #[inline]
    pub(super) fn give(&mut self, n: u32) -> u64 {
        let was = std::mem::replace(&mut self.is_with_kernel[n as usize], true);
        debug_assert!(!was, "chunk {n} is with the kernel already");
        self.with_kernel += 1;
        self.chunks.address(n)
    }

    /// Makes the kernel the owner of all returned chunks. Calls `take` with the address of each chunk, to be
    /// passed to the kernel.
    #[inline]
    pub(super) fn give_returned(&mut self, mut take: impl FnMut(u64)) {
        let chunks = Arc::clone(&self.chunks);
        chunks.take_returned().for_each(|n| take(self.give(n)));
    }

    /// Takes the `len` bytes of a frame, or of a piece of one, that the kernel has written at `address`.
    /// `None` if the kernel does not own that chunk, or the bytes exceed it.
    #[inline]
    pub(super) fn take(&mut self, address: u64, len: u32) -> Option<Received<'_>> {
        let n = self.chunks.received(address, len)?;
        let is_with_kernel = self.is_with_kernel.get_mut(n as usize)?;
        if !std::mem::take(is_with_kernel) {
            return None;
        }
        self.with_kernel -= 1;
        Some(Received { chunks: &self.chunks, n, at: address as usize, len })
    }
}

/// A received frame in its chunk. This value owns the chunk until the chunk is lent, or given back to the
/// kernel.
#[derive(Debug)]
pub(super) struct Received<'c> {
    chunks: &'c Arc<Chunks>,
    n: u32,
    at: usize,
    len: u32,
}

impl Received<'_> {
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the chunk belongs to this value, so neither the kernel nor other code writes to it.
        unsafe { self.chunks.memory.slice(self.at, self.len as usize) }
    }

    /// Lends the frame as a buffer in its chunk.
    #[inline]
    pub(super) fn into_buffer(self) -> ChunkBuf {
        let Self { n, at, len, .. } = self;
        ChunkBuf { chunks: Arc::clone(self.chunks), at, len, n }
    }

    /// Releases the chunk from this value, and returns the chunk's number.
    #[inline]
    pub(super) fn finish(self) -> u32 {
        self.n
    }
}

/// The bytes of a frame in a lent chunk. Dropping the buffer returns the chunk.
#[derive(Debug)]
pub(crate) struct ChunkBuf {
    chunks: Arc<Chunks>,
    at: usize,
    len: u32,
    n: u32,
}

impl ChunkBuf {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the chunk is lent to this buffer, so no code writes to it until it is returned.
        unsafe { self.chunks.memory.slice(self.at, self.len as usize) }
    }
}

impl Drop for ChunkBuf {
    #[inline]
    fn drop(&mut self) {
        self.chunks.put_returned(self.n);
    }
}

/// The free chunks for frames to send.
#[derive(Debug)]
pub(super) struct Outgoing {
    chunks: Arc<Chunks>,
    free: Vec<u32>,
}

impl Outgoing {
    /// Creates the value with all `send` chunks of `chunks` that are for sending.
    pub(super) fn new(chunks: Arc<Chunks>, send: u32) -> Self {
        let first = chunks.receive;
        Self { chunks, free: (first..first + send).rev().collect() }
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunks.chunk_bytes as usize
    }

    /// Takes a free chunk, and returns its number; `None` if there is none.
    pub(super) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Returns the address of chunk `n`, to pass to the kernel.
    pub(super) fn address(&self, n: u32) -> u64 {
        self.chunks.address(n)
    }

    /// Writes `bytes` into chunk `n`, which was taken, from offset `at` on. Panics if they do not fit into the chunk.
    pub(super) fn write(&mut self, n: u32, at: usize, bytes: &[u8]) {
        assert!(
            n >= self.chunks.receive && at + bytes.len() <= self.chunk_bytes(),
            "beyond a chunk"
        );
        let start = self.chunks.address(n) as usize + at;
        // SAFETY: the chunk was taken from the free ones, so neither the kernel nor other code owns it.
        unsafe { self.chunks.memory.write(start, bytes) };
    }

    /// Adds the chunk at `address` to the free chunks. The caller has taken this chunk, or the kernel has sent
    /// its frame. An address outside these chunks is ignored.
    pub(super) fn put(&mut self, address: u64) {
        let n = (address / u64::from(self.chunks.chunk_bytes)) as u32;
        let all = self.chunks.memory.bytes() as u64 / u64::from(self.chunks.chunk_bytes);
        if n >= self.chunks.receive && u64::from(n) < all && self.free.len() < self.free.capacity()
        {
            self.free.push(n);
        }
    }
}

/// Test functions: the kernel's access to the chunks.
#[cfg(test)]
impl Chunks {
    /// Writes a received frame at `address`, as the kernel does in a chunk that it owns.
    pub(super) fn fill(&self, address: u64, frame: &[u8]) {
        // SAFETY: the test has taken the chunk from the fill ring, so it belongs to the simulated kernel.
        unsafe { self.memory.write(address as usize, frame) };
    }

    /// Returns the `len` bytes at `address` of a frame to send, as the kernel reads them.
    pub(super) fn sent(&self, address: u64, len: usize) -> Vec<u8> {
        // SAFETY: the test has taken the chunk from the ring of frames to send, so no code writes to it.
        unsafe { self.memory.slice(address as usize, len) }.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_outside_the_chunks_for_received_frames_is_nobodys() {
        let chunks = Chunks::new(2_048, 4, 2).unwrap();
        assert_eq!(chunks.received(2_048 + 256, 1_792), Some(1));
        assert_eq!(chunks.received(2_048 + 256, 1_793), None, "it would reach into the next");
        assert_eq!(chunks.received(4 * 2_048, 60), None, "that is one to send from");
        assert_eq!(chunks.received(u64::MAX, 60), None);
    }

    /// Makes chunks that the kernel has, with their addresses.
    fn with_kernel(count: u32) -> (Incoming, Vec<u64>) {
        let mut incoming = Incoming::new(Chunks::new(2_048, count, 0).unwrap());
        let mut addresses = Vec::new();
        incoming.give_returned(|address| addresses.push(address));
        assert_eq!((addresses.len(), incoming.with_kernel()), (count as usize, count));
        (incoming, addresses)
    }

    #[test]
    fn a_chunk_that_the_kernel_gives_twice_is_taken_once() {
        let (mut incoming, addresses) = with_kernel(4);
        let lent = incoming.take(addresses[0] + 256, 60).unwrap().into_buffer();
        assert!(incoming.take(addresses[0], 60).is_none(), "it is lent");
        drop(lent);
        assert!(incoming.take(addresses[0], 60).is_none(), "it is returned");
        incoming.give_returned(|address| assert_eq!(address, addresses[0]));
        assert!(incoming.take(addresses[0], 60).is_some());
    }

    #[test]
    fn chunks_that_threads_return_come_back_once_each() {
        let (mut incoming, mut addresses) = with_kernel(1_024);
        let mut buffers: Vec<_> =
            addresses.iter().map(|at| incoming.take(*at, 60).unwrap().into_buffer()).collect();
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let part = buffers.split_off(buffers.len() - 256);
                scope.spawn(move || drop(part));
            }
            while seen.len() < 1_024 {
                incoming.give_returned(|address| seen.push(address));
            }
        });
        seen.sort_unstable();
        addresses.sort_unstable();
        assert_eq!(seen, addresses);
        incoming.give_returned(|_| panic!("none is left"));
    }

    #[test]
    fn a_buffer_outlives_the_source() {
        let (mut incoming, addresses) = with_kernel(1);
        let buffer = incoming.take(addresses[0] + 256, 60).unwrap().into_buffer();
        drop(incoming);
        assert_eq!(buffer.bytes(), [0; 60]);
    }

    #[test]
    fn what_is_written_to_a_chunk_stays_in_it() {
        let mut outgoing = Outgoing::new(Chunks::new(2_048, 2, 2).unwrap(), 2);
        let taken = [outgoing.take().unwrap(), outgoing.take().unwrap()];
        assert_eq!((taken, outgoing.take()), ([2, 3], None));
        outgoing.write(2, 2_040, &[7; 8]);
        outgoing.put(outgoing.address(3) + 12);
        outgoing.put(outgoing.address(0));
        outgoing.put(outgoing.address(4));
        assert_eq!((outgoing.take(), outgoing.take()), (Some(3), None));
    }
}
