//! Lane: passes frames from one thread to another, in order, without waiting.
//!
//! It is a bounded queue with one end for each thread. Contract: the number of frames is bounded, and so are
//! the bytes of copies that are not in a pool's buffer. Neither end ever waits for the other, not even if the
//! other stops in the middle of a call. Each frame in a lane is a copy, so that no memory of a device is used
//! by another thread: a thread that hangs blocks nothing but its own lanes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};
use rxo_frame::{Frame, FrameBuffer, Pool, PoolBuf};

use crate::switch::Tagged;

/// The memory of the frames that a guest's worker receives from the switch.
pub trait PortBuffer: FrameBuffer + Send + 'static {
    /// Creates a buffer from a frame in a buffer of a pool.
    fn pooled(frame: PoolBuf) -> Self;

    /// Creates a buffer from a frame whose bytes are shared with others.
    fn shared(frame: Arc<[u8]>) -> Self;
}

/// Copies the bytes, so that memory links can be used with a switch.
impl PortBuffer for Vec<u8> {
    fn pooled(frame: PoolBuf) -> Self {
        frame.to_vec()
    }

    fn shared(frame: Arc<[u8]>) -> Self {
        frame.to_vec()
    }
}

#[cfg(feature = "driver")]
impl PortBuffer for rxo_driver::DeviceBuf {
    fn pooled(frame: PoolBuf) -> Self {
        frame.into()
    }

    fn shared(frame: Arc<[u8]>) -> Self {
        frame.into()
    }
}

/// The bytes of a frame in a lane.
#[derive(Debug)]
pub(super) enum Copied {
    Pooled(PoolBuf),
    /// Separate memory, for a frame that several guests share, or while the pools are empty.
    Shared(Arc<[u8]>),
}

impl AsRef<[u8]> for Copied {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Pooled(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Copied {
    pub(super) fn into_buffer<B: PortBuffer>(self) -> B {
        match self {
            Self::Pooled(bytes) => B::pooled(bytes),
            Self::Shared(bytes) => B::shared(bytes),
        }
    }

    /// Returns the number of bytes of the frame that count against [`MOST_SHARED_BYTES`].
    fn shared_bytes(&self) -> usize {
        match self {
            Self::Pooled(_) => 0,
            Self::Shared(bytes) => bytes.len(),
        }
    }
}

/// The capacity of a lane, a queue of frames between two threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneSize {
    /// Maximum number of frames in the lane, which has a small buffer for each.
    pub(super) frames: usize,
    /// The size of a small buffer, in bytes: a frame of the MTU.
    pub(super) small_bytes: usize,
}

/// Maximum number of frames that a thread has taken from the lane and still uses; the lane has additional
/// buffers for these frames.
const IN_HAND: usize = 256;
/// The number of large buffers of a lane; [`LARGE_BYTES`] is the size of each: a GSO frame of the largest IP
/// packet, with its Ethernet header and tags.
const LARGE_BUFFERS: usize = 32;
const LARGE_BYTES: usize = 1_027 * 64;
/// Maximum number of bytes in a lane that are not in a pool's buffer: 64 GSO frames of 64 KiB.
pub(super) const MOST_SHARED_BYTES: usize = 64 * (64 << 10);
/// The bytes of a small buffer beyond the MTU: an Ethernet header, two tags, and the rest of a cache line.
const HEADER_BYTES: usize = 36;

impl LaneSize {
    /// Returns the size of a lane for `frames` frames of a device with this MTU.
    pub(super) const fn of(frames: usize, mtu: u32) -> Self {
        Self { frames, small_bytes: mtu as usize + HEADER_BYTES }
    }
}

/// The end of a lane (a queue between two threads) at which frames are put in.
pub(super) struct LaneIn {
    frames: Producer<Frame<Copied>>,
    small: Pool,
    large: Pool,
    shared_bytes: Arc<AtomicUsize>,
    /// The number of frames that were put into the lane so far.
    pub(super) put: u64,
}

/// The end of a lane (a queue between two threads) at which frames are taken out.
pub(super) struct LaneOut {
    frames: Consumer<Frame<Copied>>,
    shared_bytes: Arc<AtomicUsize>,
    /// The number of frames that were taken out of the lane so far, including those that were dropped.
    pub(super) taken: u64,
    /// The number of frames that were taken out and dropped, because their receiver no longer needed them.
    pub(super) dropped: u64,
}

/// Creates a lane, a queue of frames between two threads, and returns its two ends. Allocates all its memory
/// except that of shared frames.
pub(super) fn lane(size: LaneSize) -> (LaneIn, LaneOut) {
    let (producer, consumer) = RingBuffer::new(size.frames);
    let small = Pool::new(size.frames + IN_HAND, size.small_bytes);
    let large = Pool::new(LARGE_BUFFERS, LARGE_BYTES);
    let shared_bytes = Arc::<AtomicUsize>::default();
    let put =
        LaneIn { frames: producer, small, large, shared_bytes: Arc::clone(&shared_bytes), put: 0 };
    (put, LaneOut { frames: consumer, shared_bytes, taken: 0, dropped: 0 })
}

impl LaneIn {
    /// Puts a copy of a frame into the lane. Returns `false`, and copies nothing, if there is no free space.
    pub(super) fn push(&mut self, frame: &Tagged<'_>) -> bool {
        if self.frames.is_full() {
            return false;
        }
        let Some(bytes) = self.copy(frame) else { return false };
        self.put(frame.facts.with_bytes(bytes))
    }

    /// Puts a frame that other guests share into the lane. Returns `false` if there is no free space.
    pub(super) fn push_shared(&mut self, frame: Frame<Arc<[u8]>>) -> bool {
        self.has_room_for(frame.bytes.len()) && self.put(frame.map_bytes(Copied::Shared))
    }

    /// Returns `true` if the lane is empty: the other end has taken all frames.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.slots() == self.frames.buffer().capacity()
    }

    /// Returns `true` if there is free space for a shared frame of `shared_bytes` bytes. The result stays
    /// true until this end puts a frame in.
    pub(super) fn has_room_for(&self, shared_bytes: usize) -> bool {
        let used = self.shared_bytes.load(Ordering::Relaxed);
        !self.frames.is_full() && used + shared_bytes <= MOST_SHARED_BYTES
    }

    /// Copies a frame into a buffer of a pool. If the pools are empty, because a policy may hold many frames,
    /// copies the frame into separate memory; returns `None` if that memory is full too.
    fn copy(&self, frame: &Tagged<'_>) -> Option<Copied> {
        let bytes = frame.byte_len();
        let mut pools =
            [&self.small, &self.large].into_iter().filter(|it| it.bytes_each() >= bytes);
        if let Some(mut buffer) = pools.find_map(Pool::take) {
            buffer.truncate(bytes);
            frame.copy_to(&mut buffer);
            return Some(Copied::Pooled(buffer));
        }
        self.has_room_for(bytes).then(|| Copied::Shared(frame.pieces.concat().into()))
    }

    fn put(&mut self, frame: Frame<Copied>) -> bool {
        let shared_bytes = frame.bytes.shared_bytes();
        if shared_bytes > 0 {
            self.shared_bytes.fetch_add(shared_bytes, Ordering::Relaxed);
        }
        let is_put = self.frames.push(frame).is_ok();
        self.put += u64::from(is_put);
        is_put
    }
}

impl LaneOut {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the number of frames in the lane.
    pub(super) fn len(&self) -> usize {
        self.frames.slots()
    }

    /// Returns the oldest frame, and leaves it in the lane; `None` if the lane is empty.
    pub(super) fn first(&self) -> Option<&Frame<Copied>> {
        self.frames.peek().ok()
    }

    /// Takes the oldest frame out of the lane; `None` if the lane is empty.
    pub(super) fn pop(&mut self) -> Option<Frame<Copied>> {
        let frame = self.frames.pop().ok()?;
        let shared_bytes = frame.bytes.shared_bytes();
        if shared_bytes > 0 {
            self.shared_bytes.fetch_sub(shared_bytes, Ordering::Relaxed);
        }
        self.taken += 1;
        Some(frame)
    }

    /// Takes out and drops all frames that are in the lane now.
    pub(super) fn clear(&mut self) {
        for _ in 0..self.len() {
            self.dropped += u64::from(self.pop().is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::Instant;

    use super::*;

    fn tagged(bytes: &[u8]) -> Tagged<'_> {
        Tagged { facts: Frame::new(bytes, Instant::ZERO).with_bytes(()), pieces: [bytes, &[]] }
    }

    fn small() -> (LaneIn, LaneOut) {
        lane(LaneSize::of(8, 1_500))
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let (mut put, mut take) = small();
        let sizes = [0, 14, 1_500, 1_536, 1_537, 65_000, 70_000];
        for (n, bytes) in sizes.into_iter().enumerate() {
            assert!(put.push(&tagged(&vec![n as u8; bytes])));
        }
        let two = Tagged { facts: Frame::default(), pieces: [b"ab", b"cd"] };
        assert!(put.push(&two));
        for (n, bytes) in sizes.into_iter().enumerate() {
            assert_eq!(take.pop().unwrap().bytes(), vec![n as u8; bytes]);
        }
        assert_eq!(take.pop().unwrap().bytes(), b"abcd");
        assert!(take.is_empty() && take.pop().is_none());
        assert_eq!((put.put, take.taken), (8, 8));
    }

    #[test]
    fn a_full_lane_takes_nothing() {
        let (mut put, mut take) = small();
        assert!((0..8).all(|_| put.push(&tagged(&[7; 60]))));
        assert!(!put.push(&tagged(&[7; 60])) && !put.has_room_for(0));
        assert!(!put.push_shared(Frame::new([7; 60].into(), Instant::ZERO)));
        assert_eq!((put.put, take.len()), (8, 8));
        take.pop().unwrap();
        assert!(put.push(&tagged(&[7; 60])));
    }

    /// Memory of no pool is bounded in bytes, whatever the frames are.
    #[test]
    fn a_lane_bounds_the_bytes_that_it_shares() {
        let (mut put, mut take) = lane(LaneSize::of(1_024, 1_500));
        let frame: Arc<[u8]> = vec![7; 64 << 10].into();
        let push =
            |put: &mut LaneIn| put.push_shared(Frame::new(Arc::clone(&frame), Instant::ZERO));
        assert_eq!((0..1_024).filter(|_| push(&mut put)).count(), 64);
        assert!(put.push(&tagged(&[7; 60])), "a small frame has a buffer");
        take.pop().unwrap();
        assert!(push(&mut put) && !push(&mut put));
        assert_eq!(Arc::strong_count(&frame), 65);
    }

    /// A thread may hold more frames than it has room for in the lane.
    #[test]
    fn frames_find_memory_though_the_pools_are_empty() {
        let (mut put, mut take) = small();
        let mut held = Vec::new();
        for n in 0..2_000_u32 {
            assert!(put.push(&tagged(&n.to_be_bytes())));
            held.push(take.pop().unwrap());
        }
        assert!(held.iter().zip(0_u32..).all(|(frame, n)| frame.bytes() == n.to_be_bytes()));
        assert_eq!(put.shared_bytes.load(Ordering::Relaxed), 0);
    }
}
