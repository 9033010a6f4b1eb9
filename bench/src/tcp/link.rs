//! The link: frames in buffers that go back where they came from, in two queues. The same for every
//! stack.

use std::cell::RefCell;
use std::collections::VecDeque;

use rxo_frame::{ChecksumStatus, Frame, Instant};

/// Bytes of an IP packet at most.
pub(crate) const MTU: usize = 1_500;
/// An IP packet's room, in whole lines.
const BUFFER_BYTES: usize = 1_536;
/// Frames that a queue holds before it grows.
const QUEUE_FRAMES: usize = 1_024;

thread_local! {
    /// Buffers that nobody has. Of this thread alone, so that taking one and giving it back costs
    /// next to nothing: what is measured are the stacks.
    #[allow(clippy::vec_box, reason = "a buffer moves by its pointer, and stays where it is")]
    static FREE: RefCell<Vec<Box<[u8; BUFFER_BYTES]>>> = const { RefCell::new(Vec::new()) };
}

/// A stack's end of the link. Frames are IP packets; there is no link layer that would cost one
/// stack more than another.
pub(crate) struct Port {
    /// What has arrived and is not taken yet.
    pub(crate) received: VecDeque<Frame<Buffer>>,
    /// What is sent and not fetched yet.
    pub(crate) sent: VecDeque<Buffer>,
    /// What is known of a checksum on arrival.
    checksum: ChecksumStatus,
}

impl Port {
    /// With `checksums` the stack verifies them, without a device has.
    pub(crate) fn new(checksums: bool) -> Self {
        let (received, sent) =
            (VecDeque::with_capacity(QUEUE_FRAMES), VecDeque::with_capacity(QUEUE_FRAMES));
        let checksum = if checksums { ChecksumStatus::Unknown } else { ChecksumStatus::Verified };
        Self { received, sent, checksum }
    }

    /// A frame arrives.
    pub(crate) fn arrive(&mut self, buffer: Buffer, now: Instant) {
        let frame = Frame { checksum: self.checksum, ..Frame::new(buffer, now) };
        self.received.push_back(frame);
    }

    /// Sends a frame of `bytes`, which `write` fills.
    #[inline]
    pub(crate) fn send<R>(&mut self, bytes: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut buffer = Buffer::take(bytes);
        let result = write(buffer.bytes_mut());
        self.sent.push_back(buffer);
        result
    }
}

/// A frame's bytes. Nothing where a stack has taken the buffer out of its place.
#[derive(Default)]
pub(crate) struct Buffer {
    memory: Option<Box<[u8; BUFFER_BYTES]>>,
    /// At most [`BUFFER_BYTES`].
    length: usize,
}

impl Buffer {
    /// A free one, for `length` bytes.
    ///
    /// # Panics
    /// When they are more than a frame has.
    #[inline]
    pub(crate) fn take(length: usize) -> Self {
        assert!(length <= BUFFER_BYTES, "{length} bytes in a frame");
        let free = FREE.with_borrow_mut(Vec::pop);
        let memory = free.unwrap_or_else(|| Box::new([0; BUFFER_BYTES]));
        Self { memory: Some(memory), length }
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

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            FREE.with_borrow_mut(|free| free.push(memory));
        }
    }
}
