//! The link: two queues of frames in recycled buffers. It is the same for every stack. A stack may send GSO
//! frames if the link accepts them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;

use rxo_frame::{ChecksumStatus, Frame, FrameBuffer, Gso, Instant};

/// Largest IP packet, in bytes.
pub(crate) const MTU: usize = 1_500;
/// Size of a packet's buffer, in whole cache lines.
const BUFFER_BYTES: usize = 1_536;
/// Size of a GSO frame's buffer, in bytes.
const LARGE_BYTES: usize = 65_536;
/// Initial capacity of a queue, in frames.
const QUEUE_FRAMES: usize = 1_024;

/// Free lists of buffers, for packets and for GSO frames.
type FreeLists = [Vec<Box<[u8]>>; 2];

thread_local! {
    /// Free buffers of this thread. Thread-local, so that taking and returning a buffer costs almost nothing
    /// in the measured stacks. Never dropped, so that no access checks for destruction.
    static FREE: RefCell<ManuallyDrop<FreeLists>> =
        const { RefCell::new(ManuallyDrop::new([Vec::new(), Vec::new()])) };
}

/// A stack's end of the link. Frames are IP packets without a link layer, whose cost could differ between
/// stacks.
pub(crate) struct Port {
    /// Received frames.
    pub(crate) received: VecDeque<Frame<Buffer>>,
    /// Sent frames.
    pub(crate) sent: VecDeque<Sent>,
    /// `true` if GSO frames cross the link whole, as between guests.
    pub(crate) takes_large: bool,
    /// Checksum status of received frames.
    checksum: ChecksumStatus,
}

impl Port {
    /// Makes a port. With `checksums`, the stack verifies checksums; otherwise the device has done
    /// so.
    pub(crate) fn new(checksums: bool, takes_large: bool) -> Self {
        let (received, sent) =
            (VecDeque::with_capacity(QUEUE_FRAMES), VecDeque::with_capacity(QUEUE_FRAMES));
        let checksum = if checksums { ChecksumStatus::Unknown } else { ChecksumStatus::Verified };
        Self { received, sent, takes_large, checksum }
    }

    /// Receives a frame in `buffer`.
    pub(crate) fn arrive(&mut self, buffer: Buffer, now: Instant) {
        self.arrive_sent(Sent { buffer, gso: None }, now);
    }

    /// Receives a frame that the other end has sent.
    pub(crate) fn arrive_sent(&mut self, sent: Sent, now: Instant) {
        let Sent { buffer, gso } = sent;
        let frame = Frame { checksum: self.checksum, gso, ..Frame::new(buffer, now) };
        self.received.push_back(frame);
    }

    /// Sends a frame of `bytes` bytes that `write` fills.
    #[inline]
    pub(crate) fn send<R>(&mut self, bytes: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut buffer = Buffer::take(bytes);
        let result = write(buffer.bytes_mut());
        self.sent.push_back(Sent { buffer, gso: None });
        result
    }

    /// Sends a frame for each of `items`, filled by `write`. All buffers are taken first, so that the
    /// compiler can keep the filling loop in registers.
    #[inline]
    pub(crate) fn send_each<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(T, &mut Buffer),
    ) {
        let from = self.sent.len();
        take_each(items.len(), &mut self.sent);
        // Iterates over slices, not over the deque, whose contents may wrap around.
        let (front, back) = self.sent.as_mut_slices();
        let places = match from.checked_sub(front.len()) {
            Some(from) => &mut back[from..],
            None if back.is_empty() => &mut front[from..],
            None => &mut self.sent.make_contiguous()[from..],
        };
        let mut places = places.iter_mut();
        items.for_each(|item| {
            if let Some(sent) = places.next() {
                write(item, &mut sent.buffer);
            }
        });
    }

    /// Sends a GSO frame that `write` fills.
    pub(crate) fn send_large(&mut self, bytes: usize, gso: Gso, write: impl FnOnce(&mut [u8])) {
        assert!(self.takes_large, "a link of {MTU} bytes");
        let mut buffer = Buffer::take_large(bytes);
        write(buffer.bytes_mut());
        self.sent.push_back(Sent { buffer, gso: Some(gso) });
    }
}

/// A sent frame.
pub(crate) struct Sent {
    pub(crate) buffer: Buffer,
    /// Segmentation of a GSO frame; `None` for a single packet.
    pub(crate) gso: Option<Gso>,
}

/// Memory of a frame; empty after a stack has taken it.
#[derive(Default)]
pub(crate) struct Buffer {
    memory: Option<Box<[u8]>>,
    /// Length of the frame, at most the size of the buffer.
    length: usize,
}

impl Buffer {
    /// Takes a free buffer for a packet of `length` bytes.
    ///
    /// # Panics
    /// If `length` exceeds the size of the buffer.
    #[inline(always)]
    pub(crate) fn take(length: usize) -> Self {
        assert!(length <= BUFFER_BYTES, "{length} bytes in a frame");
        let free = FREE.with_borrow_mut(|free| free[0].pop());
        Self { memory: Some(free.unwrap_or_else(|| vec![0; BUFFER_BYTES].into())), length }
    }

    /// Sets the packet's length to `length` and returns its bytes, to be filled.
    ///
    /// # Panics
    /// If `length` exceeds the size of the buffer.
    #[inline(always)]
    pub(crate) fn room(&mut self, length: usize) -> &mut [u8] {
        self.length = length;
        self.bytes_mut()
    }

    /// Takes a free buffer for a GSO frame of `length` bytes.
    ///
    /// # Panics
    /// If `length` exceeds the largest IP packet.
    pub(crate) fn take_large(length: usize) -> Self {
        assert!(length < LARGE_BYTES, "{length} bytes in a large send");
        let free = FREE.with_borrow_mut(|free| free[1].pop());
        Self { memory: Some(free.unwrap_or_else(|| vec![0; LARGE_BYTES].into())), length }
    }

    /// Returns two buffers with equal bytes; the second is a copy of the first.
    pub(crate) fn share(self) -> (Self, Self) {
        let mut copy = Self::take_large(self.length);
        copy.bytes_mut().copy_from_slice(self.as_ref());
        (copy, self)
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let length = self.length;
        self.memory.as_mut().map_or(&mut [], |memory| &mut memory[..length])
    }
}

impl AsRef<[u8]> for Buffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| &memory[..self.length])
    }
}

impl FrameBuffer for Buffer {}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        // A stack drops many empty buffers; each costs one comparison and no write.
        if self.memory.is_some()
            && let Some(memory) = self.memory.take()
        {
            give_back(memory);
        }
    }
}

/// Takes `count` free buffers for packets at once, like a ring's descriptors.
#[inline(never)]
fn take_each(count: usize, to: &mut VecDeque<Sent>) {
    let sent = |memory| Sent { buffer: Buffer { memory: Some(memory), length: 0 }, gso: None };
    FREE.with_borrow_mut(|free| {
        let kept = free[0].len().saturating_sub(count);
        let lacking = count.saturating_sub(free[0].len());
        to.extend(free[0].drain(kept..).rev().map(sent));
        to.extend((0..lacking).map(|_| sent(vec![0; BUFFER_BYTES].into())));
    });
}

/// Returns the memory of `buffers` at once, like a ring. All must be packet buffers that still hold their
/// memory.
#[inline(never)]
pub(super) fn give_back_all(buffers: impl Iterator<Item = Buffer>) {
    let memory = |mut buffer: Buffer| buffer.memory.take().unwrap_or_default();
    FREE.with_borrow_mut(|free| free[0].extend(buffers.map(memory)));
}

/// Returns a buffer without growing a list or panicking, so that the compiler saves no registers.
#[inline(never)]
fn give_back(memory: Box<[u8]>) {
    let left = FREE.with(|free| match free.try_borrow_mut() {
        Ok(mut free) if memory.len() == BUFFER_BYTES && free[0].len() < free[0].capacity() => {
            free[0].push(memory);
            None
        }
        _ => Some(memory),
    });
    if let Some(memory) = left {
        give_back_rarely(memory);
    }
}

/// Puts a large buffer back into its free list, or a buffer beyond the usual capacity of the list.
#[cold]
#[inline(never)]
fn give_back_rarely(memory: Box<[u8]>) {
    FREE.with_borrow_mut(|free| free[usize::from(memory.len() != BUFFER_BYTES)].push(memory));
}
