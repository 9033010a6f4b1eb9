//! Receiver: the receiving half of a socket: gives chunks to the kernel, and takes back the chunks that
//! contain frames.
//!
//! Contract: a frame is taken as a whole or not at all. While the kernel has few chunks, frames are copied out of
//! their chunks, so that owners who hold frames for long do not leave the device without chunks.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rxo_device::Verdict;
use rxo_frame::{Frame, Pool, PoolBuf};

use super::chunks::Incoming;
use super::ring::{Consumer, Entry, Producer};
use crate::buffer::{DeviceBuf, LARGE_BUFFER_BYTES};
use crate::sys;

/// The receiving half of one socket.
#[derive(Debug)]
pub(super) struct Receiver {
    file: Arc<OwnedFd>,
    incoming: Incoming,
    fill: Producer<1>,
    received: Consumer<2>,
}

/// The outcome of taking one frame.
#[derive(Debug)]
pub(super) enum ChunkOutcome {
    /// There is no frame.
    Nothing,
    /// A frame, which is passed to the caller.
    Frame(Frame<DeviceBuf>),
    /// A frame of this many bytes was consumed in its chunk.
    Consumed(usize),
    /// A frame that no buffer can hold was discarded.
    TooLong,
    /// An invalid frame was discarded: `describe` returned `None`, or its ring entry contradicts the ownership of
    /// chunks.
    Invalid,
    /// No buffer is free for a frame in several chunks. The frame stays in the ring.
    NoBuffer,
}

/// The buffers for frames that cannot stay in their chunks.
#[derive(Debug)]
pub(super) struct Pools {
    /// Buffers for frames of MTU size that are in several chunks.
    pieces: Pool,
    /// Buffers for frames that are larger than the MTU.
    large: Pool,
    /// Buffers for frames that are in one chunk; `None` until the caller has announced that it holds frames.
    spare: Option<Pool>,
}

impl Receiver {
    /// Creates the receiving half of the socket `file`, and gives all chunks to the kernel.
    pub(super) fn new(
        file: Arc<OwnedFd>,
        incoming: Incoming,
        fill: Producer<1>,
        received: Consumer<2>,
    ) -> Self {
        let mut receiver = Self { file, incoming, fill, received };
        receiver.refill();
        receiver
    }

    /// Returns the number of this socket's chunks for received frames.
    pub(super) fn chunks(&self) -> usize {
        self.incoming.chunks() as usize
    }

    /// Returns `true` if the kernel has no chunk to receive into.
    pub(super) fn is_out_of_chunks(&self) -> bool {
        self.incoming.with_kernel() == 0
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Gives the kernel all chunks whose buffers were dropped, and frees the ring entries of all frames that
    /// were taken.
    pub(super) fn refill(&mut self) {
        let Self { incoming, fill, received, file } = self;
        received.release();
        incoming.give_returned(|address| push(fill, address));
        fill.publish();
        if fill.ring().needs_wakeup() {
            // Wakes up a driver that had no chunks. The call reads no data.
            let _nothing = sys::receive(file.as_fd(), &mut []);
        }
    }

    /// Takes the next frame. `describe` returns the metadata of the frame, or `None` if the frame must be
    /// discarded. `look` inspects the frame in its chunk first, and may consume it there.
    #[inline]
    pub(super) fn take(
        &mut self,
        pools: &Pools,
        describe: &impl Fn(&[u8]) -> Option<Frame<()>>,
        look: &mut impl FnMut(Frame<&[u8]>) -> Verdict,
    ) -> ChunkOutcome {
        let Some(entry) = self.received.peek(0) else { return ChunkOutcome::Nothing };
        if has_more(entry) {
            return self.take_pieces(pools, describe, look);
        }
        if let Some([ahead, _]) = self.received.known(PREFETCH_DISTANCE) {
            self.incoming.prefetch(ahead);
        }
        let are_few = self.incoming.are_few();
        let _taken = self.received.pop();
        let Some(frame) = self.incoming.take(entry[0], length(entry)) else {
            return ChunkOutcome::Invalid;
        };
        let (bytes, described) = (frame.bytes(), describe(frame.bytes()));
        let len = bytes.len();
        let taken = match described {
            None => ChunkOutcome::Invalid,
            Some(described) if look(described.with_bytes(bytes)) == Verdict::Consumed => {
                ChunkOutcome::Consumed(len)
            }
            Some(described) => match are_few.then(|| pools.copy(bytes)).flatten() {
                Some(copy) => ChunkOutcome::Frame(described.with_bytes(copy.into())),
                None => {
                    return ChunkOutcome::Frame(
                        described.with_bytes(DeviceBuf::chunk(frame.into_buffer())),
                    );
                }
            },
        };
        let n = frame.finish();
        push(&mut self.fill, self.incoming.give(n));
        taken
    }

    /// Takes a frame that is in several chunks, and copies it into one buffer.
    #[cold]
    fn take_pieces(
        &mut self,
        pools: &Pools,
        describe: &impl Fn(&[u8]) -> Option<Frame<()>>,
        look: &mut impl FnMut(Frame<&[u8]>) -> Verdict,
    ) -> ChunkOutcome {
        let (mut bytes, mut pieces) = (0, 0);
        loop {
            // The kernel shows all pieces of a frame at once.
            let Some(entry) = self.received.peek(pieces) else { return ChunkOutcome::Nothing };
            bytes += length(entry) as usize;
            pieces += 1;
            if !has_more(entry) {
                break;
            }
        }
        let mut buffer = match pools.for_pieces(bytes) {
            Some(pool) => match pool.take() {
                Some(buffer) => Some(buffer),
                None => return ChunkOutcome::NoBuffer,
            },
            None => None,
        };
        let is_whole = self.gather(pieces, buffer.as_mut());
        let Some(buffer) = buffer else { return ChunkOutcome::TooLong };
        let Some(described) = describe(&buffer).filter(|_| is_whole) else {
            return ChunkOutcome::Invalid;
        };
        if look(described.with_bytes(&buffer[..])) == Verdict::Consumed {
            return ChunkOutcome::Consumed(bytes);
        }
        ChunkOutcome::Frame(described.with_bytes(buffer.into()))
    }

    /// Takes `pieces` chunks, copies them into `buffer` one after the other, and gives them to the kernel.
    /// Returns `false` if the kernel did not own one of these chunks.
    fn gather(&mut self, pieces: u32, mut buffer: Option<&mut PoolBuf>) -> bool {
        let (mut end, mut is_whole) = (0, true);
        for _ in 0..pieces {
            let Some(entry) = self.received.pop() else { return false };
            let Some(piece) = self.incoming.take(entry[0], length(entry)) else {
                is_whole = false;
                continue;
            };
            if let Some(buffer) = buffer.as_deref_mut() {
                buffer.set_len(end + piece.bytes().len());
                buffer[end..].copy_from_slice(piece.bytes());
                end = buffer.len();
            }
            let n = piece.finish();
            push(&mut self.fill, self.incoming.give(n));
        }
        is_whole
    }
}

impl Pools {
    /// Creates pools for frames of `frame_bytes` bytes that are in several chunks, and `large` larger
    /// buffers.
    pub(super) fn new(frame_bytes: usize, large: usize) -> Self {
        Self {
            pieces: Pool::new(PIECES_BUFFERS, frame_bytes),
            large: Pool::new(large, LARGE_BUFFER_BYTES),
            spare: None,
        }
    }

    /// Creates buffers of `chunk_bytes` bytes for frames that are copied out of their chunks.
    pub(super) fn expect_holds(&mut self, chunk_bytes: usize) {
        self.spare.get_or_insert_with(|| Pool::new(SPARE_BUFFERS, chunk_bytes));
    }

    /// Returns the pool for a frame of `bytes` bytes that is in several chunks; `None` if the frame is longer
    /// than all buffers.
    fn for_pieces(&self, bytes: usize) -> Option<&Pool> {
        let mut pools = [&self.pieces, &self.large].into_iter();
        pools.find(|pool| bytes <= pool.bytes_each())
    }

    /// Copies a frame that is in one chunk into a buffer; `None` if no buffer is free.
    #[cold]
    fn copy(&self, bytes: &[u8]) -> Option<PoolBuf> {
        let mut buffer = self.spare.as_ref()?.take()?;
        buffer.set_len(bytes.len());
        buffer.copy_from_slice(bytes);
        Some(buffer)
    }
}

/// Gives the chunk at `address` to the kernel. The fill ring has an entry for every chunk.
#[inline]
fn push(fill: &mut Producer<1>, address: u64) {
    let _has_place = fill.push([address]);
    debug_assert!(_has_place, "the fill ring is too short");
}

/// Returns the length of a frame or piece, in bytes.
#[inline]
fn length(entry: Entry<2>) -> u32 {
    length_and_options(entry)[0]
}

/// Returns `true` if the next entry continues the frame.
#[inline]
fn has_more(entry: Entry<2>) -> bool {
    length_and_options(entry)[1] & libc::XDP_PKT_CONTD != 0
}

/// Splits the second word of an entry, which the kernel writes as two numbers.
#[inline]
fn length_and_options(entry: Entry<2>) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = entry[1].to_ne_bytes();
    [[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes)
}

/// The distance of prefetches from the frame that is being taken, in frames.
const PREFETCH_DISTANCE: u32 = 6;
/// The number of buffers for frames of MTU size that are in several chunks.
const PIECES_BUFFERS: usize = 2_048;
/// The number of buffers for frames that are copied out of their chunks.
const SPARE_BUFFERS: usize = 2_048;

#[cfg(test)]
pub(super) mod tests;
